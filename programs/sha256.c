/* SHA-256 (FIPS 180-4) of each argument, or of standard input. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
static const uint32_t start[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

typedef struct {
  uint32_t state[8];
  uint8_t block[64];
  size_t used;
  uint64_t bytes;
} sha256_t;

static uint32_t rotate(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void compress(sha256_t *hash) {
  uint32_t w[64], s[8];
  for (int i = 0; i < 16; i++) {
    const uint8_t *p = hash->block + 4 * i;
    w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
  }
  for (int i = 16; i < 64; i++) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
           (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
  }
  memcpy(s, hash->state, sizeof s);
  for (int i = 0; i < 64; i++) {
    uint32_t one = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
    uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
    uint32_t t1 = s[7] + one + choice + constants[i] + w[i];
    uint32_t zero = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
    uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += t1;
    s[0] = t1 + zero + majority;
  }
  for (int i = 0; i < 8; i++) hash->state[i] += s[i];
  hash->used = 0;
}

static void add(sha256_t *hash, const void *data, size_t size) {
  hash->bytes += size;
  for (const uint8_t *byte = data; size; size--, byte++) {
    hash->block[hash->used++] = *byte;
    if (hash->used == sizeof hash->block) compress(hash);
  }
}

static void finish(sha256_t *hash) {
  uint64_t bits = hash->bytes * 8;
  uint8_t length[8];
  for (int i = 0; i < 8; i++) length[i] = (uint8_t)(bits >> (56 - 8 * i));
  add(hash, "\x80", 1);
  while (hash->used != 56) add(hash, "", 1);
  add(hash, length, sizeof length);
}

static void begin(sha256_t *hash) {
  memset(hash, 0, sizeof *hash);
  memcpy(hash->state, start, sizeof start);
}

static void show(const sha256_t *hash, const char *name) {
  for (int i = 0; i < 8; i++) printf("%08x", (unsigned)hash->state[i]);
  printf("  %s\n", name);
}

int main(int argc, char **argv) {
  sha256_t hash;
  for (int i = 1; i < argc; i++) {
    begin(&hash);
    add(&hash, argv[i], strlen(argv[i]));
    finish(&hash);
    show(&hash, argv[i]);
  }
  if (argc > 1) return 0;
  char buffer[128];
  size_t size;
  begin(&hash);
  while ((size = fread(buffer, 1, sizeof buffer, stdin))) add(&hash, buffer, size);
  finish(&hash);
  show(&hash, "-");
  return 0;
}
