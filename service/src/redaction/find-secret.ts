import {
  classOf,
  findRunEnd,
  isAlphanumeric,
  isKeyUnit,
  isTokenStart,
  isUpperOrDigit,
} from './characters.ts'
import type { Find, FindRest, Finding, Seen } from './entity.ts'

/** A key that is known by how it begins. After `least` units it is certain, and the rest of the run belongs to it. */
type KeyShape = { prefix: string; isInside: (unit: number) => boolean; least: number }

const keyShapes: readonly KeyShape[] = [
  ...['AKIA', 'ASIA'].map((prefix) => ({ prefix, isInside: isUpperOrDigit, least: 16 })),
  ...['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_'].map((prefix) => ({
    prefix,
    isInside: isAlphanumeric,
    least: 36,
  })),
  { prefix: 'github_pat_', isInside: isKeyUnit, least: 40 },
  { prefix: 'glpat-', isInside: isKeyUnit, least: 20 },
  ...['xoxa-', 'xoxb-', 'xoxp-', 'xoxr-', 'xoxs-'].map((prefix) => ({
    prefix,
    isInside: isKeyUnit,
    least: 10,
  })),
  { prefix: 'sk-', isInside: isKeyUnit, least: 20 },
  ...['sk_live_', 'sk_test_', 'rk_live_', 'rk_test_'].map((prefix) => ({
    prefix,
    isInside: isAlphanumeric,
    least: 16,
  })),
  { prefix: 'AIza', isInside: isKeyUnit, least: 35 },
  ...['gate_adm_', 'gate_prj_'].map((prefix) => ({ prefix, isInside: isAlphanumeric, least: 40 })),
]
const longestKey = 512

/** What keys, tokens and assignments begin with, so that most places need no further look. */
const canBeginToken = classOf(`e${keyShapes.map(({ prefix }) => prefix.charAt(0)).join('')}`)
const canBeginAssignment = classOf('pPsSaAtT')

export const findSecret: Find = (seen, at) => {
  const unit = seen.text.charCodeAt(at)
  if (unit === 45) return findPrivateKey(seen, at)
  if (canBeginToken(unit) && isTokenStart(seen, at)) {
    const found = unit === 101 ? findWebToken(seen, at) : findKey(seen, at)
    if (found) return found
  }
  return canBeginAssignment(unit) ? findAssigned(seen, at) : null
}

const secret = (start: number, end: number, findRest?: FindRest): Finding =>
  findRest ? { kind: 'SECRET', start, end, findRest } : { kind: 'SECRET', start, end }

/** Whether a text begins with a prefix here; 'open': as far as it has come it does. */
function beginsWith({ text, isWhole }: Seen, prefix: string, at: number): boolean | 'open' {
  if (text.startsWith(prefix, at)) return true
  const isShort = text.length - at < prefix.length
  return isShort && !isWhole && prefix.startsWith(text.slice(at)) ? 'open' : false
}

/** The rest of a run, counted from where the entity starts. */
const restOfRun =
  (isInside: KeyShape['isInside'], most: number): FindRest =>
  (seen, from, start) =>
    findRunEnd(seen, from, isInside, most - (from - start))

const findKey: Find = (seen, at) => {
  let isOpen = false
  for (const { prefix, isInside, least } of keyShapes) {
    const begins = beginsWith(seen, prefix, at)
    if (begins === 'open') isOpen = true
    if (begins !== true) continue
    const run = findRunEnd(seen, at + prefix.length, isInside, least)
    if (run.isOpen) return 'open'
    if (run.end - at - prefix.length === least) {
      return secret(at, run.end, restOfRun(isInside, longestKey))
    }
  }
  return isOpen ? 'open' : null
}

/** A name of an address that it may be the end of waits with it, and `entityHold` counts both. */
const longestTokenHeader = 448
const longestToken = 6000

/** A JSON Web Token is certain when its second part begins: both are JSON objects in base64. */
const findWebToken: Find = (seen, at) => {
  const begins = beginsWith(seen, 'eyJ', at)
  if (begins !== true) return begins === 'open' ? 'open' : null
  // Much text has no such token and no full stop for long: then there is no need to look at each character.
  const ahead = seen.text.slice(at, at + 3 + longestTokenHeader + 1)
  if (ahead.length > 3 + longestTokenHeader && !ahead.includes('.')) return null
  const header = findRunEnd(seen, at + 3, isKeyUnit, longestTokenHeader)
  if (header.isOpen) return 'open'
  if (header.end - at < 11) return null
  const goesOn = beginsWith(seen, '.eyJ', header.end)
  if (goesOn !== true) return goesOn === 'open' ? 'open' : null
  return secret(at, header.end + 4, findTokenRest)
}

/** A full stop belongs to the token only if it goes on behind it. */
const findTokenRest: FindRest = (seen, from, start) => {
  let at = from
  for (;;) {
    const run = findRunEnd(seen, at, isKeyUnit, longestToken - (at - start))
    const { text, isWhole } = seen
    const next = run.end + 1
    if (run.isOpen || text.charAt(run.end) !== '.' || next - start >= longestToken) return run
    if (next === text.length && !isWhole) return { end: run.end, isOpen: true }
    if (!isKeyUnit(text.charCodeAt(next))) return run
    at = next
  }
}

const keyHeader = /^-----BEGIN [A-Z ]{0,25}PRIVATE KEY(?: BLOCK)?-----/
const keyFooter = /-----END [A-Z ]{0,25}PRIVATE KEY(?: BLOCK)?-----$/
const longestHeader = 64
const longestBlock = 8000
/** At first there may be lines of words, as `Proc-Type: 4,ENCRYPTED`, which end where something is quoted. */
const longestBlockHead = 300
const isQuote = (unit: number) => unit === 34 || unit === 39 || unit === 96
/** Base64 in lines, whose breaks may be written as \n. */
const isBlockUnit = (unit: number) => isAlphanumeric(unit) || isBetween(unit)
const isBetween = classOf('+/=-\\ \n\r\t')

const findPrivateKey: Find = (seen, at) => {
  const begins = beginsWith(seen, '-----BEGIN ', at)
  if (begins !== true) return begins === 'open' ? 'open' : null
  const slice = seen.text.slice(at, at + longestHeader)
  const header = keyHeader.exec(slice)?.[0]
  if (header !== undefined) return secret(at, at + header.length, findBlockRest)
  const canGoOn = !seen.isWhole && slice.length < longestHeader && /^[A-Z -]*$/.test(slice)
  return canGoOn ? 'open' : null
}

const findBlockRest: FindRest = ({ text, isWhole }, from, start) => {
  let end = from
  for (; end - start < longestBlock; end++) {
    if (end === text.length) return { end, isOpen: !isWhole }
    const unit = text.charCodeAt(end)
    const isHead = end - start < longestBlockHead
    if (isHead ? isQuote(unit) : !isBlockUnit(unit)) break
    if (unit !== 45) continue
    const last = text.slice(Math.max(0, end + 1 - longestHeader), end + 1)
    if (keyFooter.test(last)) return { end: end + 1, isOpen: false }
  }
  return { end, isOpen: false }
}

const assignment = /^(?:password|passwd|secret|api[_-]?key|token)["']?\s?[:=]\s?(["'])/i
const longestAssignment = 16
/** What an assignment can consist of, up to the quote that opens the value. */
const begunAssignment = /^[a-z_-]*["']?\s?[:=]?\s?$/i
/** The value is certain when the quote is closed, or when it is so long. */
const certainValue = 40
const longestValue = 512
/** What was redacted is no secret any more. */
const placeholder = /^\[[A-Z]+_\d+\]/

/** The value of a password, key or token in a program or a configuration: `password = "..."`. */
const findAssigned: Find = (seen, at) => {
  const { text, isWhole } = seen
  // Most words that begin with one of these letters go on in another way.
  if (at + 1 < text.length && !canBeSecond(text.charCodeAt(at + 1))) return null
  if (at + 2 < text.length && !beginnings.has(text.slice(at, at + 3).toLowerCase())) return null
  const slice = text.slice(at, at + longestAssignment)
  const match = assignment.exec(slice)
  if (!match) {
    const canGoOn = !isWhole && slice.length < longestAssignment && isAssignmentStart(slice)
    return canGoOn ? 'open' : null
  }
  const start = at + match[0].length
  const isInside = (unit: number) =>
    unit !== 34 && unit !== 39 && unit !== 32 && !(unit >= 9 && unit <= 13)
  const run = findRunEnd(seen, start, isInside, certainValue)
  if (run.isOpen) return 'open'
  if (run.end - start === certainValue) {
    return secret(start, run.end, restOfRun(isInside, longestValue))
  }
  const isClosed = text.charAt(run.end) === match[1]
  const value = text.slice(start, run.end)
  if (!isClosed || value.length < 6 || placeholder.test(value)) return null
  return secret(start, run.end)
}

const canBeSecond = classOf('aApPeEoO')
const beginnings: ReadonlySet<string> = new Set(['pas', 'sec', 'api', 'tok'])
const keywords = ['password', 'passwd', 'secret', 'apikey', 'api_key', 'api-key', 'token']

function isAssignmentStart(slice: string): boolean {
  const word = /^[a-z_-]*/i.exec(slice)?.[0].toLowerCase() ?? ''
  if (word.length === slice.length) return keywords.some((keyword) => keyword.startsWith(word))
  return keywords.includes(word) && begunAssignment.test(slice)
}
