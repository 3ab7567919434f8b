/** Waits for the first item, so that whatever fails before it can still be answered differently. */
export async function started<T>(items: AsyncGenerator<T>): Promise<AsyncGenerator<T>> {
  const first = await items.next()
  return (async function* () {
    try {
      if (!first.done) yield first.value
      yield* items
    } finally {
      await items.return(undefined)
    }
  })()
}
