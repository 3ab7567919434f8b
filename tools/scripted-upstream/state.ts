import type { IncomingHttpHeaders } from 'node:http'

import type { Script, ScriptError } from './script.ts'

const requestsKept = 50
const hangUpsKept = 1000
const bodyKeptCharacters = 1024 * 1024

export type Received = { method: string; path: string; headers: IncomingHttpHeaders; body: string }

type Kept = Received & { bodyCharacters: number }

export type HangUp = { afterMs: number; pieces: number }

/** What the upstream remembers between requests. */
export function createState() {
  let requests = 0
  let open = 0
  let mode: ScriptError | undefined
  let hungUp: HangUp[] = []
  let received: Kept[] = []
  let failuresByKey = new Map<string, number>()
  return {
    begin(request: Received) {
      requests++
      open++
      received.push(withoutLongBody(request))
      // Cutting the list now and then is cheaper than moving it at every request.
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
    /** Whether this request is still among the ones that fail. */
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

/** A long body is told by its length only: fifty of them would fill the memory. */
function withoutLongBody(request: Received): Kept {
  const { length: bodyCharacters } = request.body
  if (bodyCharacters <= bodyKeptCharacters) return { ...request, bodyCharacters }
  return { ...request, body: '', bodyCharacters }
}

const present = ({ body, ...rest }: Kept) => ({ ...rest, body: readJson(body) })

function readJson(text: string): unknown {
  if (text === '') return null
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
