/**
 * Waits for the first item, so that whatever fails before it can still be answered differently. Items are
 * handed on without a generator in between: every one of those costs each item several turns.
 */
export async function started<T>(items: AsyncGenerator<T>): Promise<AsyncIterableIterator<T>> {
  const first = await items.next()
  let isFirst = true
  const iterator: AsyncIterableIterator<T> = {
    next() {
      if (!isFirst) return items.next()
      isFirst = false
      return Promise.resolve(first)
    },
    return: () => items.return(undefined),
    [Symbol.asyncIterator]: () => iterator,
  }
  return iterator
}
