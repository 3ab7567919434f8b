import { lengthOf, withoutControls, wrapped } from '../../output/text-columns.ts'
import { secondOf } from '../../output/times.ts'
import type { Change, ChangedMember } from './changes.ts'

export type History = {
  policyId: string
  changes: readonly Change[]
  /** Names of keys by their ids; those that were deleted, and those the caller may not see, are missing. */
  keyNames: ReadonlyMap<string, string>
  /** The id of the last event, where older changes are left. */
  next: string | undefined
}

/** Who changed the policy, when and how, the newest change first; no line is wider than the terminal. */
export function describeHistory({ policyId, changes, keyNames, next }: History, width: number) {
  const name = changes.find(({ policyName }) => policyName !== null)?.policyName
  const count = changes.length === 1 ? '1 change' : `${changes.length} changes, the newest first`
  const lines = [
    ...wrapped(withoutControls(`${policyId}${name ? ` "${name}"` : ''}: ${count}`), width),
    ...changes.flatMap((change) => ['', ...linesOf(change, keyNames, width)]),
    ...(next === undefined ? [] : ['', 'There are older changes:', `  --after ${next}`]),
  ]
  return `${lines.join('\n')}\n`
}

const membersMax = 20

function linesOf(change: Change, keyNames: History['keyNames'], width: number): string[] {
  const { at, members } = change
  const shown = members?.slice(0, membersMax) ?? []
  const left = (members?.length ?? 0) - shown.length
  return [
    `${secondOf(new Date(at))}  ${deedOf(change)}`,
    `  by ${actorOf(change, keyNames)}`,
    ...(members === null ? ['  what has changed was erased'] : []),
    ...shown.flatMap((member) => linesOfMember(member, width)),
    ...(left > 0 ? [`  and ${left} more: --json shows them`] : []),
  ].map((line) => shortened(withoutControls(line), width))
}

function actorOf({ actor, actorType, person }: Change, keyNames: History['keyNames']): string {
  const name = person?.name ?? keyNames.get(actor)
  // `operator` is what it is.
  const type = actorType === null || actorType === actor ? '' : ` (${actorType})`
  const email = person ? ` <${person.email}>` : ''
  return `${actor}${type}${name === undefined ? '' : ` "${name}"`}${email}`
}

function deedOf({ action, revision, version, restoredVersion }: Change): string {
  const at = revision === null ? '' : ` (revision ${revision})`
  if (restoredVersion !== null) return `restored version ${restoredVersion} into the draft${at}`
  return `${action}${action === 'published' ? ` version ${version}` : ''}${at}`
}

/** On one line where there is room for both values, otherwise one line for each. */
function linesOfMember({ name, before, after }: ChangedMember, width: number): string[] {
  if (before === undefined) return [`  ${name}: ${valueOf(after)}`]
  const line = `  ${name}: ${valueOf(before)} -> ${valueOf(after)}`
  if (lengthOf(withoutControls(line)) <= width) return [line]
  return [`  ${name}:`, `    before ${valueOf(before)}`, `    after  ${valueOf(after)}`]
}

const valueOf = (value: unknown) => (value === undefined ? '-' : JSON.stringify(value))

const shortened = (line: string, width: number) =>
  lengthOf(line) <= width
    ? line
    : `${Array.from(line)
        .slice(0, width - 1)
        .join('')}…`

/** The same for programs. */
export const jsonOfHistory = ({ policyId, changes, keyNames, next }: History) => ({
  policy_id: policyId,
  changes: changes.map((change) => ({
    event_id: change.eventId,
    created_at: change.at,
    actor: change.actor,
    actor_type: change.actorType,
    actor_name: change.person?.name ?? keyNames.get(change.actor) ?? null,
    actor_email: change.person?.email ?? null,
    action: change.action,
    revision: change.revision,
    version: change.version,
    restored_version: change.restoredVersion,
    members: change.members,
  })),
  has_more: next !== undefined,
  last_id: changes.at(-1)?.eventId ?? null,
})
