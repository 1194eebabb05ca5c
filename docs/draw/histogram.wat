;; Counts how often each number below 4 comes in 2 0 2 1 2 0: memory that is written again and again.
(module
  (memory 1)
  (func $count (param $number i32)
    (i32.store8 (local.get $number)
      (i32.add (i32.load8_u (local.get $number)) (i32.const 1))))
  (func (export "main") (result i32)
    (call $count (i32.const 2)) (call $count (i32.const 0)) (call $count (i32.const 2))
    (call $count (i32.const 1)) (call $count (i32.const 2)) (call $count (i32.const 0))
    (i32.load8_u (i32.const 2))))
