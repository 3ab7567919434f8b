/** More of an answer than anybody is shown. */
const quotedMax = 2000
/** A shorter part of a secret says little about it, and is often a part of ordinary words too. */
const telltaleLength = 8

/**
 * A text that a destination sent, to be quoted. Destinations repeat what they were sent, so every secret is taken out of it:
 * also in other letters or encodings, and parts of it.
 */
export function withoutSinkSecrets(text: string, secrets: readonly (string | undefined)[]): string {
  const forms = secrets.flatMap((secret) => (secret ? formsOf(secret.trim()) : []))
  const start = text.slice(0, quotedMax)
  const lower = toLowerEach(start)
  let quoted = ''
  for (let index = 0; index < start.length;) {
    const length = Math.max(0, ...forms.map((form) => secretLengthAt(lower, index, form)))
    quoted += length > 0 ? '***' : start[index]
    index += length > 0 ? length : 1
  }
  return quoted
}

const formsOf = (secret: string) =>
  [
    secret,
    encodeURIComponent(secret.toWellFormed()),
    JSON.stringify(secret).slice(1, -1),
    // Three bytes are four letters; the last letters depend on what follows the secret.
    Buffer.from(secret).toString('base64').replace(/.?=+$/, ''),
  ].map(toLowerEach)

/** Some letters become two in lower case, and positions would not be the same. */
const toLowerEach = (text: string) => text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())

function secretLengthAt(text: string, index: number, secret: string): number {
  let length = Math.min(telltaleLength, secret.length)
  const isPart = () =>
    index + length <= text.length && secret.includes(text.slice(index, index + length))
  if (length === 0 || text[index] === ' ' || !isPart()) return 0
  do length += 1
  while (isPart())
  return length - 1
}
