import { type ChildProcess, fork } from 'node:child_process'

/**
 * Starts a process that answers each message with one message; a `failure` in the answer is thrown. Before it, the process
 * may send `progress`.
 */
export function startChild(file: URL) {
  const child: ChildProcess = fork(file, { execArgv: [] })
  return {
    request<Answer extends object>(message: object, onProgress?: () => void): Promise<Answer> {
      const answered = new Promise<Answer>((resolve, reject) => {
        const fail = (code: number | null) => reject(new Error(`${file.pathname} ended: ${code}.`))
        const receive = (answer: Answer & { failure?: string; progress?: true }) => {
          if (answer.progress) return onProgress?.()
          child.off('exit', fail)
          child.off('message', receive)
          if (answer.failure === undefined) resolve(answer)
          else reject(new Error(answer.failure))
        }
        child.once('exit', fail)
        child.on('message', receive)
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
