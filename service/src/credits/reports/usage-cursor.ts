import { z } from 'zod'

import { invalidCursor } from '#http/read-page.ts'

const Day = z.iso.date()
/** PostgreSQL stores no NUL and no lone surrogates, so no item has them. */
const Text = z.string().refine((text) => text.isWellFormed() && !text.includes('\0'))

/** The cursor carries the groups of an item and their values: continuing needs no lookup. */
export const usageCursor = (groups: readonly string[], key: readonly string[]) =>
  `usage_${Buffer.from(JSON.stringify([groups.join(), ...key])).toString('base64url')}`

/** Throws for a cursor of another grouping, and for one that we have not made. */
export function readUsageCursor(cursor: string, groups: readonly string[]): string[] {
  const [, ...key] = parse(cursor)
  const isValid = key.length === groups.length && cursor === usageCursor(groups, key)
  const hasDay = groups[0] !== 'day' || Day.safeParse(key[0]).success
  if (isValid && hasDay) return key
  throw invalidCursor()
}

function parse(cursor: string): string[] {
  try {
    const text = Buffer.from(cursor.slice('usage_'.length), 'base64url').toString()
    return z.array(Text).max(6).parse(JSON.parse(text))
  } catch {
    throw invalidCursor()
  }
}
