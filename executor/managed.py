"""Context managers that only want to know how they are left."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType


class Managed(ABC):
    """A context manager whose ``leave`` hears of the exception that ends it, if one does."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave(error)

    @abstractmethod
    def leave(self, error: BaseException | None) -> None:
        """Finish; what is raised here takes the exception's place."""
