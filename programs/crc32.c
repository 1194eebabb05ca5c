/* The CRC-32 of zip and Ethernet, bit by bit: shifts and exclusive-or.
 * Arguments: [TEXT], "123456789" if none is given, whose CRC is cbf43926. */
#include <stdio.h>

unsigned crc32(const char *text) {
  unsigned crc = ~0u;
  for (; *text; text++) {
    crc ^= (unsigned char)*text;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (-(crc & 1) & 0xedb88320u);
  }
  return ~crc;
}

int main(int argc, char **argv) {
  printf("%08x\n", crc32(argc > 1 ? argv[1] : "123456789"));
  return 0;
}
