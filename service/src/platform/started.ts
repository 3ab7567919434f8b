/**
 * Waits for the first item, so that a failure before it can still change the whole answer. It returns a plain
 * iterator: another generator in between would cost several microtask turns per item.
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
    throw: (error) => items.throw(error),
    [Symbol.asyncIterator]: () => iterator,
  }
  return iterator
}
