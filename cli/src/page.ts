import { z } from 'zod'

/** What the client needs of a list; items and further members pass as they are. */
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

/** Follows a list to its end, or to the bound; then `has_more` and `last_id` say where to go on. */
export async function followPages(
  readPage: (after: string | undefined) => Promise<unknown>,
): Promise<unknown> {
  const first = await readPage(undefined)
  let last = pageIn(first)
  if (!last) return first
  const data = [...last.data]
  // An empty page that promises more would be read for ever.
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
