/** Everything that reads the time takes it as a parameter; only `assemble.ts` hands out this one. */
export type Clock = () => Date

export const systemClock: Clock = () => new Date()

export const toSeconds = (time: Date) => Math.floor(time.getTime() / 1000)
