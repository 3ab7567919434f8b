/** Whatever was started is stopped in the end, also when the end came while it started. */
export async function keep<T extends { stop(): Promise<unknown> }>(
  started: T,
  cleanup: AsyncDisposableStack,
): Promise<T> {
  if (cleanup.disposed) {
    await started.stop()
    throw new Error('The run was interrupted.')
  }
  cleanup.defer(async () => void (await started.stop()))
  return started
}
