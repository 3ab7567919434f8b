/** Code that reads the time takes a clock as a parameter; only entry files use these. */
export type Clock = () => Date

export const systemClock: Clock = () => new Date()

/**
 * For durations inside the process: pauses, windows, ages of cached values. It does not jump when the system's clock is set,
 * which would otherwise keep a circuit open or a value cached for as long as the clock was set back.
 */
export const steadyClock: Clock = () => new Date(performance.timeOrigin + performance.now())

export const toSeconds = (time: Date) => Math.floor(time.getTime() / 1000)
