import { findRunEnd, isDigit, isLetter } from './characters.ts'
import type { Find, Seen } from './entity.ts'

export const longestName = 64
const longestDomain = 255

/** Units that the name before the `@` of an address is made of: letters, digits and . _ + - % */
export const isNameUnit = (unit: number) =>
  isLetter(unit) ||
  isDigit(unit) ||
  unit === 46 ||
  unit === 95 ||
  unit === 43 ||
  unit === 45 ||
  unit === 37

const isDomainUnit = (unit: number) => isLetter(unit) || isDigit(unit) || unit === 45 || unit === 46

/** Where the name begins that ends before `at`, not before `from`. */
export function findNameStart(text: string, at: number, from: number): number {
  const first = Math.max(from, at - longestName, 0)
  let start = at
  while (start > first && isNameUnit(text.charCodeAt(start - 1))) start--
  return start
}

/** The address around the `@` that stands here, with the name before it. */
export function findEmail(seen: Seen, at: number, nameStart: number): ReturnType<Find> {
  const { text } = seen
  let start = nameStart
  while (start < at && text.charAt(start) === '.') start++
  if (start === at) return null
  const { end: runEnd, isOpen } = findRunEnd(seen, at + 1, isDomainUnit, longestDomain)
  if (isOpen) return 'open'
  const length = findDomainLength(text.slice(at + 1, runEnd))
  return length > 0 ? { kind: 'EMAIL', start, end: at + 1 + length } : null
}

const topLevel = /^(?:\p{L}{2,}|xn--[a-z0-9-]+)$/iu

/** The labels up to the last one that can be a top-level domain; 0: there is none. */
function findDomainLength(run: string): number {
  let [length, end] = [0, 0]
  for (const [index, label] of run.split('.').entries()) {
    if (label === '') break
    end += label.length + (index > 0 ? 1 : 0)
    if (index > 0 && topLevel.test(label)) length = end
  }
  return length
}
