import { type ChildProcess, fork } from 'node:child_process'

/** Starts a process that answers each message with one message; a `failure` in the answer is thrown. */
export function startChild(file: URL) {
  const child: ChildProcess = fork(file, { execArgv: [] })
  return {
    request<Answer extends object>(message: object): Promise<Answer> {
      const answered = new Promise<Answer>((resolve, reject) => {
        const fail = (code: number | null) => reject(new Error(`${file.pathname} ended: ${code}.`))
        child.once('exit', fail)
        child.once('message', (answer: Answer & { failure?: string }) => {
          child.off('exit', fail)
          if (answer.failure === undefined) resolve(answer)
          else reject(new Error(answer.failure))
        })
      })
      child.send(message)
      return answered
    },
    stop: () => {
      if (child.connected) child.disconnect()
    },
  }
}
export type Child = ReturnType<typeof startChild>
