import { createDeadlines, type Deadline } from '#platform/deadline.ts'

type Pending = {
  resolve: (answer: unknown) => void
  reject: (error: Error) => void
  deadline: Deadline | undefined
  readonly sentAtMs: number
  /** The caller no longer waits for the answer, but the server will send it. */
  isOver: boolean
}

type Options = {
  deadlineMs: number
  createLateError: () => Error
  /** Called when the server has answered nothing for this long although commands wait. */
  silentMaxMs: number
  onSilence: () => void
}

/** How many answered commands are kept in the list before it is shortened. */
const answeredMax = 1024

/** The commands that wait for their answers, which come in order. */
export function createPendingCommands(options: Options) {
  const { createLateError, silentMaxMs, onSilence } = options
  const deadlines = createDeadlines(options.deadlineMs)
  let commands: Pending[] = []
  let first = 0
  let answeredAtMs = -Infinity

  function giveUp(command: Pending) {
    command.isOver = true
    command.reject(createLateError())
    if (silentMs() >= silentMaxMs) onSilence()
  }

  /** For how long the first command has waited, and nothing came meanwhile. */
  function silentMs(): number {
    const command = commands[first]
    return command ? performance.now() - Math.max(command.sentAtMs, answeredAtMs) : 0
  }

  function end({ deadline }: Pending) {
    if (deadline) deadlines.takeBack(deadline)
  }

  return {
    /** The answer to a command that is sent after all that were added before. */
    add({ hasDeadline }: { hasDeadline: boolean }): Promise<unknown> {
      return new Promise((resolve, reject) => {
        const sentAtMs = performance.now()
        const command: Pending = { resolve, reject, deadline: undefined, sentAtMs, isOver: false }
        if (hasDeadline) command.deadline = deadlines.set(() => giveUp(command))
        commands.push(command)
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
      answeredAtMs = performance.now()
      if (command.isOver) return
      end(command)
      if (error) command.reject(error)
      else command.resolve(answer)
    },
    rejectAll(error: Error) {
      const open = commands.slice(first)
      commands = []
      first = 0
      for (const command of open) {
        end(command)
        if (!command.isOver) command.reject(error)
      }
    },
  }
}
