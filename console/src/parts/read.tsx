import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'

import { Failed, Loading } from './states.tsx'

type ReadProps<Data> = {
  query: Pick<UseQueryResult<Data>, 'data' | 'error' | 'refetch'>
  rows?: number
  children: (data: Data) => ReactNode
}

/** What a query has read: while it loads, when it has failed, and when it is there. Old data stay while newer are read. */
export function Read<Data>({ query, rows = 6, children }: ReadProps<Data>) {
  const { data, error, refetch } = query
  if (data !== undefined) return children(data)
  if (error) return <Failed error={error} onRetry={() => void refetch()} />
  return <Loading rows={rows} />
}
