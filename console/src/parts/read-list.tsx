import type { UseInfiniteQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'

import { More } from './more.tsx'
import { Failed, Loading } from './states.tsx'

type ReadListProps<Row> = {
  query: UseInfiniteQueryResult<{ rows: Row[] }>
  /** What is said where there are no rows. */
  empty: ReactNode
  children: (rows: Row[]) => ReactNode
}

/** A list as far as it was read, in every state. */
export function ReadList<Row>({ query, empty, children }: ReadListProps<Row>) {
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = query
  if (data === undefined) {
    return error ? <Failed error={error} onRetry={() => void refetch()} /> : <Loading />
  }
  if (data.rows.length === 0) return empty
  return (
    <>
      {children(data.rows)}
      <More
        shown={data.rows.length}
        hasMore={hasNextPage}
        isBusy={isFetchingNextPage}
        onMore={() => void fetchNextPage()}
      />
    </>
  )
}
