import type { IncomingHttpHeaders } from 'node:http'

import type { Script, ScriptError } from './script.ts'

const requestsKept = 50
const hangUpsKept = 1000
const bodyKeptCharacters = 1024 * 1024

export type Received = { method: string; path: string; headers: IncomingHttpHeaders; body: string }

type KeptRequest = Received & { bodyCharacters: number }

export type HangUp = { afterMs: number; pieces: number }

/** The state that the upstream keeps between requests. */
export function createState() {
  let requests = 0
  let open = 0
  let mode: ScriptError | undefined
  let hungUp: HangUp[] = []
  let received: KeptRequest[] = []
  let failuresByKey = new Map<string, number>()
  return {
    begin(request: Received) {
      requests++
      open++
      received.push(withoutLongBody(request))
      // Truncating the list occasionally is cheaper than shifting it at every request.
      if (received.length >= requestsKept * 4) received = received.slice(-requestsKept)
      return String(requests).padStart(8, '0')
    },
    end(hangUp?: HangUp) {
      open--
      if (hangUp && hungUp.length < hangUpsKept) hungUp.push(hangUp)
    },
    mode: () => mode,
    setMode(error: ScriptError) {
      mode = error
    },
    /** Counts the request under its key; true if it is one of those that fail. */
    isFailing({ key = '', repeatTimes }: Script) {
      if (!repeatTimes) return true
      const failed = failuresByKey.get(key) ?? 0
      failuresByKey.set(key, failed + 1)
      return failed < repeatTimes.n
    },
    reset() {
      ;[requests, mode, hungUp, received] = [0, undefined, [], []]
      failuresByKey = new Map()
    },
    report() {
      return { requests, open, hungUp, lastRequests: received.slice(-requestsKept).map(present) }
    },
  }
}

export type State = ReturnType<typeof createState>

/** Keeps only the length of a long body, because fifty long bodies would fill the memory. */
function withoutLongBody(request: Received): KeptRequest {
  const { length: bodyCharacters } = request.body
  if (bodyCharacters <= bodyKeptCharacters) return { ...request, bodyCharacters }
  return { ...request, body: '', bodyCharacters }
}

const present = ({ body, ...rest }: KeptRequest) => ({ ...rest, body: readJson(body) })

function readJson(text: string): unknown {
  if (text === '') return null
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
