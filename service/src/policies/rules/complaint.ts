import type { RuleProblem } from '#policies/rule.ts'

/** Says what is wrong with an expression, and where. Thrown while it is read, and caught by who began to read it. */
export class Complaint extends Error {
  readonly offset: number

  constructor(what: string, offset: number) {
    super(what)
    this.offset = offset
  }
}

/** A complaint quotes the rule, and callers get at most 300 characters of an error. */
const wordsMaxLength = 200

/** Names the place in the rule's own text, where its author can find it. */
export function placeComplaint(rule: string, offset: number, what: string): RuleProblem {
  const before = rule.slice(0, offset)
  const line = before.split('\n').length
  const column = offset - before.lastIndexOf('\n')
  const words = what.length > wordsMaxLength ? `${what.slice(0, wordsMaxLength)}…` : what
  return `is not accepted: line ${line}, column ${column}: ${words.replaceAll(/\s+/g, ' ')}`
}
