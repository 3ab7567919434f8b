type Pending = {
  resolve: (answer: unknown) => void
  reject: (error: Error) => void
  lateAtMs: number
  /** Nobody waits for the answer any more, but the server will send it. */
  isOver: boolean
}

type Options = {
  deadlineMs: number
  createLateError: () => Error
  /** Called when so many commands in a row were not answered in time. */
  missesMax: number
  onMisses: () => void
}

/** As in deadline.ts: in a busy process an answer may have arrived that nobody has read yet. */
const turnsAfterDeadline = 3
/** How many answered commands are kept in the list before it is shortened. */
const answeredMax = 1024

/** The commands that wait for their answers, which come in order. One timer watches the deadlines of all. */
export function createPendingCommands(options: Options) {
  const { deadlineMs, createLateError, missesMax, onMisses } = options
  let commands: Pending[] = []
  let first = 0
  let misses = 0
  let isWatching = false

  function check() {
    const nowMs = performance.now()
    let nextMs = Infinity
    for (let index = first; index < commands.length; index++) {
      const { isOver, lateAtMs } = commands[index] as Pending
      if (!isOver && lateAtMs < nextMs) nextMs = lateAtMs
    }
    if (nextMs <= nowMs) return afterTurns(turnsAfterDeadline, () => giveUp(nowMs))
    isWatching = nextMs < Infinity
    if (isWatching) setTimeout(check, Math.ceil(nextMs - nowMs))
  }

  /** Rejects what was late at that time and still is not answered. */
  function giveUp(nowMs: number) {
    for (let index = first; index < commands.length; index++) {
      const command = commands[index] as Pending
      if (command.isOver || command.lateAtMs > nowMs) continue
      command.isOver = true
      misses++
      command.reject(createLateError())
    }
    if (misses >= missesMax) onMisses()
    check()
  }

  return {
    /** The answer to a command that is sent after all that were added before. */
    add({ hasDeadline }: { hasDeadline: boolean }): Promise<unknown> {
      if (hasDeadline && !isWatching) {
        isWatching = true
        setTimeout(check, deadlineMs)
      }
      const lateAtMs = hasDeadline ? performance.now() + deadlineMs : Infinity
      return new Promise((resolve, reject) => {
        commands.push({ resolve, reject, lateAtMs, isOver: false })
      })
    },
    answerFirst(error: Error | null, answer: unknown) {
      const command = commands[first]
      if (!command) throw new Error('Redis answered a command that was not sent')
      first++
      if (first === commands.length || first > answeredMax) {
        commands = commands.slice(first)
        first = 0
      }
      if (command.isOver) return
      misses = 0
      if (error) command.reject(error)
      else command.resolve(answer)
    },
    rejectAll(error: Error) {
      const open = commands.slice(first)
      commands = []
      first = 0
      for (const { isOver, reject } of open) if (!isOver) reject(error)
    },
  }
}

function afterTurns(turns: number, work: () => void) {
  if (turns === 0) work()
  else setImmediate(afterTurns, turns - 1, work)
}
