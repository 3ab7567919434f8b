/** Stops a process or server when the run ends, or at once if the run has ended while it was starting. */
export async function deferStop<T extends { stop(): Promise<unknown> }>(
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
