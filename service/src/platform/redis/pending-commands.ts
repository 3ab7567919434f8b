import { createDeadlines, type Deadline } from '#platform/deadline.ts'

type Pending = {
  resolve: (answer: unknown) => void
  reject: (error: Error) => void
  deadline: Deadline | undefined
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

/** How many answered commands are kept in the list before it is shortened. */
const answeredMax = 1024

/** The commands that wait for their answers, which come in order. */
export function createPendingCommands(options: Options) {
  const { createLateError, missesMax, onMisses } = options
  const deadlines = createDeadlines(options.deadlineMs)
  let commands: Pending[] = []
  let first = 0
  let misses = 0

  function giveUp(command: Pending) {
    command.isOver = true
    misses++
    command.reject(createLateError())
    if (misses >= missesMax) onMisses()
  }

  function end({ deadline }: Pending) {
    if (deadline) deadlines.takeBack(deadline)
  }

  return {
    /** The answer to a command that is sent after all that were added before. */
    add({ hasDeadline }: { hasDeadline: boolean }): Promise<unknown> {
      return new Promise((resolve, reject) => {
        const command: Pending = { resolve, reject, deadline: undefined, isOver: false }
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
      if (command.isOver) return
      end(command)
      misses = 0
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
