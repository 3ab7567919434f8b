import { revisionMax } from '@gatehouse/contract/revision'
import { z } from 'zod'

import { invalidCursor } from '#http/read-page.ts'

/** PostgreSQL stores no NUL and no lone surrogates, so no item has them. */
const Text = z.string().refine((text) => text.isWellFormed() && !text.includes('\0'))
const Key = z.tuple([
  z.enum(['hour', 'day']),
  z.int().min(0).max(253_402_300_799), // the year 9999
  z.int().min(1).max(revisionMax),
  Text,
  z.enum(['request', 'response', 'history']),
  z.enum(['allow', 'refuse']),
  z.enum(['monitoring', 'enforcing']),
])

/** What distinguishes an item from others of its list: by what it is summed, and the values of its columns. */
export type DecisionKey = z.infer<typeof Key>

/** The cursor carries the whole key of an item: continuing needs no lookup. */
export const decisionCursor = (key: DecisionKey) =>
  `decisions_${Buffer.from(JSON.stringify(key)).toString('base64url')}`

/** Throws for a cursor of another list, and for one that we have not made. */
export function readDecisionCursor(cursor: string, by: DecisionKey[0]): DecisionKey {
  const key = parse(cursor)
  if (key[0] === by && cursor === decisionCursor(key)) return key
  throw invalidCursor()
}

function parse(cursor: string): DecisionKey {
  try {
    const text = Buffer.from(cursor.slice('decisions_'.length), 'base64url').toString()
    return Key.parse(JSON.parse(text))
  } catch {
    throw invalidCursor()
  }
}
