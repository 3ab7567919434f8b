import { infiniteQueryOptions, type QueryKey } from '@tanstack/react-query'

type PageOf<Row> = { data: Row[]; has_more: boolean; last_id: string | null }
type ReadPage<Row> = (
  page: { limit: string; after?: string },
  signal: AbortSignal,
) => Promise<PageOf<Row>>

/** A list that is read a hundred rows at a time. */
export const listQuery = <Row>(queryKey: QueryKey, read: ReadPage<Row>) =>
  infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam: after, signal }) =>
      read({ limit: '100', ...(after !== null && { after }) }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => (page.has_more ? page.last_id : null),
    select: ({ pages }) => ({ rows: pages.flatMap(({ data }) => data) }),
  })
