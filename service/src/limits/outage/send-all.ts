/** Redis does nothing else while it processes one batch, and calls wait for it. */
const atOnce = 20

/**
 * Sends something for each item, many at once. In a busy process every round trip takes a turn of the event loop, so sending
 * the counts of a thousand organizations one after the other would take a minute. Throws the first error after everything that
 * was sent has ended.
 */
export async function sendAll<Item>(
  items: Iterable<Item>,
  send: (item: Item) => Promise<unknown>,
): Promise<void> {
  const unsent = [...items]
  while (unsent.length > 0) {
    const sent = await Promise.allSettled(unsent.splice(0, atOnce).map(send))
    const failed = sent.find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
  }
}
