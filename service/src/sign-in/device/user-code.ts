import { randomInt } from 'node:crypto'

/** Without vowels, so that no word comes out, and without letters that look like digits (RFC 8628, 6.1). */
const letters = 'BCDFGHJKLMNPQRSTVWXZ'
const length = 8
const shape = new RegExp(`^[${letters}]{${length}}$`)

/** A code that a person types, such as `WDJB-MJHT`: one of 25,600,000,000. */
export const createUserCode = (): string =>
  showUserCode(Array.from({ length }, () => letters[randomInt(letters.length)]).join(''))

const showUserCode = (code: string) => `${code.slice(0, 4)}-${code.slice(4)}`

/** The code that a person has typed, as it is shown: in whatever case, with or without the hyphen. Undefined: it can be none. */
export function readUserCode(text: string): string | undefined {
  const code = text.slice(0, 40).toUpperCase().replaceAll(/[\s-]/g, '')
  return shape.test(code) ? showUserCode(code) : undefined
}
