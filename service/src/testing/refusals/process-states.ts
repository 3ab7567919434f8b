import type { House } from '#assemble.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'

// What a process can be short of while a call arrives. Each is brought about with the parts of the process itself.

export type ProcessState =
  | 'overloaded'
  | 'organization overloaded'
  | 'no turn'
  | 'too many bodies'
  | 'no memory for bodies'
  | 'audit log full'
  | 'policies unknown'

type Ending = () => void | Promise<void>
type Tested = { house: House; organizationId: string; flags: Set<ProcessState> }

/** As many calls as may be decided at a time, each of another organization. */
const busy = Array.from({ length: 32 }, (_, number) => `busy ${number}`)
/** More than may wait, each of another organization. */
const crowd = Array.from({ length: 1010 }, (_, number) => `waiting ${number}`)
/** Four times the concurrent requests of an organization. */
export const concurrentRequests = 100
const readersMax = 4 * concurrentRequests

const enterings: Record<ProcessState, (tested: Tested) => Ending> = {
  overloaded: ({ house }) => occupy(house, [...busy, ...crowd]),
  'organization overloaded': ({ house, organizationId }) =>
    occupy(house, [...busy, ...crowd.map(() => organizationId)]),
  'no turn': ({ house }) => occupy(house, busy),
  'too many bodies': ({ house, organizationId }) => openReaders(house, organizationId),
  'no memory for bodies': fillMemory,
  'audit log full': ({ flags }) => raise(flags, 'audit log full'),
  'policies unknown': ({ flags }) => raise(flags, 'policies unknown'),
}

/** Puts the process into a state; returns what ends it. */
export const enter = (state: ProcessState, tested: Tested): Ending => enterings[state](tested)

/** Takes turns of the overload protection, or waits for them, in these names. */
function occupy({ overload }: House, names: readonly string[]): Ending {
  const over = new Cancellation()
  const turns = names.map((name) => overload.waitForTurn(name, over).catch(() => null))
  return async () => {
    over.cancel(new Error('The test goes on.'))
    for (const turn of await Promise.all(turns)) turn?.[Symbol.dispose]()
  }
}

function openReaders({ bodies }: House, organizationId: string): Ending {
  const readers = Array.from({ length: readersMax }, () =>
    bodies.budget.open(`inference ${organizationId}`, readersMax),
  )
  return () => readers.forEach((reader) => reader?.release())
}

const smallBytes = 64 * 1024

/** Each of these organizations gets at most a quarter of the memory for large bodies, and a quarter for small ones. */
function fillMemory({ house: { bodies, config } }: Tested): Ending {
  const quarter = (config.BODY_MEMORY_MB * 1024 * 1024) / 4
  const reservations = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].flatMap((name) =>
    [quarter, ...Array.from({ length: 1024 }, () => smallBytes)].map((bytes) => {
      const reservation = bodies.budget.open(name, Infinity)
      reservation?.grow(bytes)
      return reservation
    }),
  )
  return () => reservations.forEach((reservation) => reservation?.release())
}

function raise(flags: Set<ProcessState>, state: ProcessState): Ending {
  flags.add(state)
  return () => void flags.delete(state)
}
