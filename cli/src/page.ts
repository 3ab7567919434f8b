import { z } from 'zod'

/** The members of a list that the client reads; items and other members pass unchanged. */
const Page = z.looseObject({
  data: z.array(z.unknown()),
  has_more: z.boolean(),
  last_id: z.string().nullable(),
})
export type Page = z.infer<typeof Page>

export function pageIn(answer: unknown): Page | undefined {
  const parsed = Page.safeParse(answer)
  return parsed.success ? parsed.data : undefined
}

const itemsMax = 10_000

/** Reads pages up to the end of the list or to 10,000 items; then `has_more` and `last_id` show where to continue. */
export async function followPages(
  readPage: (after: string | undefined) => Promise<unknown>,
): Promise<unknown> {
  const first = await readPage(undefined)
  let last = pageIn(first)
  if (!last) return first
  const data = [...last.data]
  // An empty page with `has_more` would be read forever.
  while (last.has_more && last.last_id && last.data.length > 0) {
    if (data.length + last.data.length > itemsMax) break
    const next = pageIn(await readPage(last.last_id))
    if (!next) throw new Error('A page of the list is not a list.')
    data.push(...next.data)
    last = { ...next, last_id: next.last_id ?? last.last_id }
  }
  const { has_more, last_id } = last
  return { ...(first as Page), data, has_more, last_id }
}
