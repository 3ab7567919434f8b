import { setFlagsFromString } from 'node:v8'

/**
 * How large each half of the space for new objects may become, in MB. On a large machine V8 would take 64: docs/benchmarks.md
 * compares them.
 */
const semiSpaceMb = 32
const semiSpaceOption = '--max-semi-space-size'

/** Settings of the JavaScript engine that the service needs. They must be in force before its code is loaded. */
export function prepareService() {
  limitNewSpace()
  // A safety net for our own patterns: one that backtracks too much is finished by the linear engine.
  setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks')
}

/**
 * V8 reads this limit only when a process starts, so the process replaces itself by one that has it: same process id, same
 * standard streams. An operator's own limit is kept. A process with a channel to its parent, which would be lost, gets the
 * option from its parent or does without it.
 */
function limitNewSpace() {
  // eslint-disable-next-line node/no-process-env
  const environment = process.env
  const options = [...process.execArgv, environment['NODE_OPTIONS'] ?? ''].join(' ')
  // The option may be written with underscores too.
  if (options.replaceAll('_', '-').includes(semiSpaceOption)) return
  if (process.send || !process.execve || process.platform === 'win32') return
  const [node, ...args] = [process.execPath, ...process.argv.slice(1)]
  const option = `${semiSpaceOption}=${semiSpaceMb}`
  process.execve(node, [node, ...process.execArgv, option, ...args], { ...environment })
}
