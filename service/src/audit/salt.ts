import { randomFillSync } from 'node:crypto'

export const saltBytes = 16
const salts = Buffer.alloc(saltBytes * 128)
let nextSalt = salts.length

/** Random bytes for one event; the generator makes those of many at a time. */
export function takeSalt(): Buffer {
  if (nextSalt === salts.length) {
    randomFillSync(salts)
    nextSalt = 0
  }
  return salts.subarray(nextSalt, (nextSalt += saltBytes))
}
