import type { UsageGroup } from '@gatehouse/contract/credits'
import { z } from 'zod'

import { invalidCursor } from '#http/read-page.ts'

const Day = z.iso.date()
/** What no store can keep was never an item. */
const Text = z.string().refine((text) => text.isWellFormed() && !text.includes('\0'))

/** An item is named by what it is about: no item has to be found again to continue behind it. */
export const usageCursor = (groups: readonly UsageGroup[], key: readonly string[]) =>
  `usage_${Buffer.from(JSON.stringify([groups.join(), ...key])).toString('base64url')}`

/** A cursor of another grouping names no item of this list. */
export function readUsageCursor(cursor: string, groups: readonly UsageGroup[]): string[] {
  const [, ...key] = parse(cursor)
  const isOurs = key.length === groups.length && cursor === usageCursor(groups, key)
  const hasDay = groups[0] !== 'day' || Day.safeParse(key[0]).success
  if (isOurs && hasDay) return key
  throw invalidCursor()
}

function parse(cursor: string): string[] {
  try {
    const text = Buffer.from(cursor.slice('usage_'.length), 'base64url').toString()
    return z.array(Text).max(5).parse(JSON.parse(text))
  } catch {
    throw invalidCursor()
  }
}
