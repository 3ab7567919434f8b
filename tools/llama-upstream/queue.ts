/** Runs one job at a time, in the order of arrival. `isFull` is true while `waitingMax` jobs are waiting. */
export function createQueue(waitingMax: number) {
  let isBusy = false
  const waiting: (() => void)[] = []
  return {
    isFull: () => isBusy && waiting.length >= waitingMax,
    async run<Result>(work: () => Promise<Result>): Promise<Result> {
      if (isBusy) await new Promise<void>((resolve) => waiting.push(resolve))
      isBusy = true
      try {
        return await work()
      } finally {
        const next = waiting.shift()
        if (next) next()
        else isBusy = false
      }
    },
  }
}
