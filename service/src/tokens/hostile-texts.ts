import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'

/** Texts that are slow to count or have crashed tokenizers, each of about the given number of bytes. */
export const hostileTexts: Record<string, (bytes: number) => string> = {
  'one letter': (bytes) => 'a'.repeat(bytes),
  spaces: (bytes) => ' '.repeat(bytes),
  'spaces before a word': (bytes) => `${' '.repeat(bytes - 1)}x`,
  newlines: (bytes) => '\n'.repeat(bytes),
  'spaces and newlines': (bytes) => ' \n'.repeat(bytes / 2),
  punctuation: (bytes) => '!'.repeat(bytes),
  'upper case': (bytes) => 'A'.repeat(bytes),
  'mixed case': (bytes) => 'aA'.repeat(bytes / 2),
  digits: (bytes) => '7'.repeat(bytes),
  'random base64': (bytes) => noise(bytes).toString('base64').slice(0, bytes),
  'random letters': (bytes) => noise(bytes).toString('hex').replace(/\d/g, 'q').slice(0, bytes),
  'Chinese characters': (bytes) => '漢字仮名交文'.repeat(bytes / 18),
  'random Chinese characters': (bytes) => randomChinese(bytes / 3),
  'emoji with joiners': (bytes) => '😀👩\u200d👩\u200d👧\u200d👦'.repeat(bytes / 29),
  'combining marks': (bytes) => `a${'\u0301'.repeat(bytes / 2)}`,
  'lone surrogates': (bytes) => '\ud800'.repeat(bytes / 3),
  NUL: (bytes) => '\0'.repeat(bytes),
  'special tokens': (bytes) => '<|endoftext|><|fim_prefix|><|endofprompt|>'.repeat(bytes / 42),
  'a caseless letter, then capitals': (bytes) => `漢${'A'.repeat(bytes)}`,
  'JSON escapes': (bytes) => '\\u0000\\n\\"'.repeat(bytes / 10),
}

/** Distinct short words: a counter cannot cache them, but each is quick to merge. */
export function unknownWords(bytes: number): string {
  const words = Array.from({ length: Math.ceil(bytes / 5) }, (_, index) =>
    ((index * 2_654_435_761) % 2 ** 32).toString(36),
  )
  return words.join(' ').slice(0, bytes)
}

/** Pseudorandom bytes, the same on every call. */
function noise(length: number): Buffer {
  const chunks = Array.from({ length: Math.ceil(length / 64) }, (_, index) =>
    createHash('sha512').update(String(index)).digest(),
  )
  return Buffer.concat(chunks)
}

function randomChinese(characters: number): string {
  const bytes = noise(characters * 2)
  let text = ''
  for (let index = 0; index < characters; index++) {
    text += String.fromCharCode(0x4e00 + (bytes.readUInt16LE(index * 2) % 20_000))
  }
  return text
}
