import type { ListQuery } from '@gatehouse/contract/list'

import { ApiError } from '#platform/api-error.ts'
import type { Page, Position } from '#platform/keyset.ts'

/** Turns the query of a list into a page; a cursor that names no item of this list is a 400. */
export async function readPage(
  { after, limit, order }: ListQuery,
  findPosition: (id: string) => Promise<Position | undefined>,
): Promise<Page> {
  if (after === undefined) return { after, limit, order }
  const position = await findPosition(after)
  if (!position) throw invalidCursor()
  return { after: position, limit, order }
}

export const invalidCursor = () =>
  new ApiError(
    'invalid_cursor',
    "'query.after' is not an item of this list; use the last_id of a page of the same list.",
    { param: 'query.after' },
  )
