import type { PolicyReplay } from '@gatehouse/contract/policy-evaluation'

import type { RecordedCall } from './recorded-call.ts'
import { replayCall, type ReplayedDraft } from './replay-call.ts'

type Counts = PolicyReplay['projects'][number]
type Change = Exclude<keyof Counts, 'project_id' | 'requests'>

const projectsShown = 1000

/** Adds up by project what would change. */
export function createChangeCounts(draft: ReplayedDraft) {
  const byProject = new Map<string | null, Counts>()
  return {
    add(call: RecordedCall) {
      const { projectId } = call
      const counts = byProject.get(projectId) ?? nothingIn(projectId)
      byProject.set(projectId, counts)
      counts.requests++
      counts[changeOf(replayCall(draft, call))]++
    },
    list: () =>
      [...byProject.values()]
        .toSorted((one, other) => other.requests - one.requests)
        .slice(0, projectsShown),
  }
}

function changeOf({ before, after }: ReturnType<typeof replayCall>): Change {
  if (after === null) return 'unknown'
  if (after === before) return 'unchanged'
  if (after === 'refused') return 'newly_refused'
  if (before === 'refused') return 'no_longer_refused'
  return after === 'noted' ? 'newly_noted' : 'no_longer_noted'
}

const nothingIn = (projectId: string | null): Counts => ({
  project_id: projectId,
  requests: 0,
  unchanged: 0,
  newly_refused: 0,
  no_longer_refused: 0,
  newly_noted: 0,
  no_longer_noted: 0,
  unknown: 0,
})
