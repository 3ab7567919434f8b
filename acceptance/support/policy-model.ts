import type {
  PolicyContent,
  PolicyCreation,
  PolicyEdit,
  PolicyState,
  PolicyVersion,
} from '@gatehouse/contract/policy'
import fc, { type Arbitrary } from 'fast-check'

// The life of a policy, written anew from the decisions (2.1 to 2.3, 3, 4.1 to 4.5, G10.5) and from
// nothing of the service: where the two differ, one of them is wrong. Everything here is pure. The end
// of the file makes the random wishes and edits.

export type ModelPolicy = {
  readonly name: string
  readonly description: string
  readonly state: PolicyState
  readonly revision: number
  readonly draft: PolicyContent & { readonly base_version: number | null }
  /** The first is version 1; the last is the published one. */
  readonly versions: readonly PolicyContent[]
  readonly isDeleted: boolean
}

/** What the service is free to choose; once chosen it must stay. */
export type Facts = {
  readonly id: string
  readonly created_at: number
  readonly updated_at: number
  readonly versions: readonly Pick<PolicyVersion, 'id' | 'sha256' | 'published_at'>[]
}

export type Refusal = {
  readonly status: number
  readonly code: string
  readonly param: string | null
  readonly says?: string
}
export type Outcome = ModelPolicy | Refusal
export const isRefusal = (outcome: object): outcome is Refusal => 'code' in outcome

type IsActive = (projectId: string) => boolean

const refusal = (status: number, code: string, param: string | null = null): Refusal => ({
  status,
  code,
  param,
})
export const policyNotFound = refusal(404, 'policy_not_found')
export const versionNotFound = refusal(404, 'version_not_found')
const invalidCursor = refusal(400, 'invalid_cursor', 'query.after')

/** G3.8: existence before revision, revision before everything else. */
function refuse(policy: ModelPolicy, revision: number, place = 'body'): Refusal | null {
  if (policy.isDeleted) return policyNotFound
  if (policy.revision === revision) return null
  const conflict = refusal(409, 'revision_conflict', `${place}.revision`)
  return { ...conflict, says: `revision ${policy.revision}.` }
}

const unique = (ids: readonly string[]) => ids.filter((id, index) => ids.indexOf(id) === index)

/** Project ids are a set; everything else must be equal (G2.7). */
function isSameContent(left: PolicyContent, right: PolicyContent): boolean {
  const ids = [left.project_ids, right.project_ids].map((each) => each.toSorted().join())
  return (
    ids[0] === ids[1] &&
    left.rule === right.rule &&
    left.direction === right.direction &&
    left.mode === right.mode &&
    left.scope === right.scope &&
    left.match_threshold_basis_points === right.match_threshold_basis_points
  )
}

/** The scope first (G2.13), then the projects that the request names itself (G2.14). */
function refuseContent(content: PolicyContent, sent: readonly string[], isActive: IsActive) {
  const namesProjects = content.project_ids.length > 0
  if (namesProjects !== (content.scope === 'projects')) {
    return refusal(422, 'invalid_scope', 'body.project_ids')
  }
  const unknown = sent.findIndex((id) => !isActive(id))
  if (unknown === -1) return null
  return refusal(422, 'unknown_project', `body.project_ids[${unknown}]`)
}

/** G2.17, G3.2. */
export function create(wish: PolicyCreation, isActive: IsActive): Outcome {
  const draft = {
    rule: wish.rule,
    direction: wish.direction ?? 'both',
    mode: wish.mode ?? 'monitoring',
    scope: wish.scope ?? 'unattached',
    project_ids: unique(wish.project_ids ?? []),
    match_threshold_basis_points: wish.match_threshold_basis_points ?? null,
    base_version: null,
  }
  const refused = refuseContent(draft, wish.project_ids ?? [], isActive)
  if (refused) return refused
  const name = wish.name.trim()
  const description = (wish.description ?? '').trim()
  return { name, description, state: 'draft', revision: 1, draft, versions: [], isDeleted: false }
}

/** G3.3, G4.10, G4.12. A draft that would demand the same keeps also the order of its projects. */
export function update(policy: ModelPolicy, edit: PolicyEdit, isActive: IsActive): Outcome {
  const refused = refuse(policy, edit.revision)
  if (refused) return refused
  const sent = edit.match_threshold_basis_points
  const old = policy.draft
  const wanted = {
    rule: edit.rule ?? old.rule,
    direction: edit.direction ?? old.direction,
    mode: edit.mode ?? old.mode,
    scope: edit.scope ?? old.scope,
    project_ids: unique(edit.project_ids ?? old.project_ids),
    match_threshold_basis_points: sent === undefined ? old.match_threshold_basis_points : sent,
    base_version: old.base_version,
  }
  const refusedContent = refuseContent(wanted, edit.project_ids ?? [], isActive)
  if (refusedContent) return refusedContent
  const name = edit.name?.trim() ?? policy.name
  const description = edit.description?.trim() ?? policy.description
  const draft = isSameContent(wanted, old) ? old : wanted
  const isSame = draft === old && name === policy.name && description === policy.description
  return isSame ? policy : raised({ ...policy, name, description, draft })
}

/** G3.4, G4.19: from `paused` a new version is made, but only resuming puts it in force. */
export function publish(policy: ModelPolicy, revision: number, isActive: IsActive): Outcome {
  const refused = refuse(policy, revision)
  if (refused) return refused
  if (!hasUnpublishedChanges(policy)) return refusal(409, 'no_unpublished_changes')
  const { base_version: _, ...content } = policy.draft
  if (!content.project_ids.every(isActive)) {
    return refusal(409, 'draft_not_publishable', 'draft.project_ids')
  }
  const versions = [...policy.versions, content]
  const state = policy.state === 'paused' ? 'paused' : content.mode
  return raised({
    ...policy,
    state,
    versions,
    draft: { ...content, base_version: versions.length },
  })
}

/** G3.5. */
export function pause(policy: ModelPolicy, revision: number): Outcome {
  const refused = refuse(policy, revision)
  if (refused) return refused
  const isActive = policy.state === 'monitoring' || policy.state === 'enforcing'
  return isActive ? raised({ ...policy, state: 'paused' }) : refusal(409, 'policy_not_active')
}

/** G3.6. */
export function resume(policy: ModelPolicy, revision: number): Outcome {
  const refused = refuse(policy, revision)
  if (refused) return refused
  const mode = policy.versions.at(-1)?.mode
  if (policy.state !== 'paused' || !mode) return refusal(409, 'policy_not_paused')
  return raised({ ...policy, state: mode })
}

/** G3.7, G4.20. */
export function remove(policy: ModelPolicy, revision: number): Outcome {
  return refuse(policy, revision, 'query') ?? { ...policy, isDeleted: true }
}

/** G10.5: an edit like any other, so that a draft that is there already stays as it is. */
export function restore(policy: ModelPolicy, version: number, revision: number): Outcome {
  const refused = refuse(policy, revision)
  if (refused) return refused
  const content = policy.versions[version - 1]
  if (!content) return versionNotFound
  const isThere = policy.draft.base_version === version && isSameContent(policy.draft, content)
  return isThere ? policy : raised({ ...policy, draft: { ...content, base_version: version } })
}

const raised = (policy: ModelPolicy): ModelPolicy => ({ ...policy, revision: policy.revision + 1 })

/** G2.7. */
function hasUnpublishedChanges({ draft, versions }: ModelPolicy): boolean {
  const published = versions.at(-1)
  return published === undefined || !isSameContent(draft, published)
}

/** What a list must show of it (G2.9). */
export const summaryOf = (policy: ModelPolicy, { id, created_at, updated_at }: Facts) => ({
  ...{ id, object: 'organization.policy', created_at, updated_at },
  ...{ name: policy.name, description: policy.description },
  ...{ state: policy.state, revision: policy.revision },
  current_version: policy.versions.length || null,
  has_unpublished_changes: hasUnpublishedChanges(policy),
})

/** What must be answered when it is read. */
export const viewOf = (policy: ModelPolicy, facts: Facts) => ({
  ...summaryOf(policy, facts),
  draft: policy.draft,
  published: versionsOf(policy, facts).at(-1) ?? null,
})

/** All versions, the oldest first (G2.21). */
export const versionsOf = ({ versions }: ModelPolicy, facts: Facts) =>
  versions.map((content, index) => ({
    ...facts.versions[index],
    object: 'organization.policy.version',
    version: index + 1,
    ...content,
    current: index === versions.length - 1,
  }))

export type PageQuery = { limit?: number; order?: 'asc' | 'desc'; after?: string | undefined }

/**
 * One page of a list (G2.24, G2.25, G4.5 to G4.7). Items and places are given the oldest first; a place
 * can be one that no item has any more.
 */
export function pageOf(
  items: readonly { id?: string }[],
  places: readonly string[],
  { limit = 20, order = 'asc', after }: PageQuery,
) {
  if (after !== undefined && !places.includes(after)) return invalidCursor
  const turned = <T>(line: readonly T[]) => (order === 'desc' ? line.toReversed() : line)
  const line = turned(places)
  const start = after === undefined ? -1 : line.indexOf(after)
  const behind = turned(items).filter(({ id = '' }) => line.indexOf(id) > start)
  const data = behind.slice(0, limit)
  return {
    ...{ object: 'list', data, has_more: behind.length > limit },
    ...{ first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null },
  }
}

// What is sent. Few values, so that edits often lead back to where the policy was.

type Fields = Partial<Omit<PolicyEdit, 'revision' | 'project_ids'>> & {
  /** Places in a list of projects, of which the first three can be named and the others cannot. */
  project_ids?: number[] | null
}

const record = <T>(fields: { [Name in keyof T]: Arbitrary<T[Name]> }) =>
  fc.record(fields, { requiredKeys: [], noNullPrototype: true })
const nullable = <T>(values: Arbitrary<T>) => fc.option(values, { freq: 6 })

const names = fc.constantFrom('Tone', ' Tone ', 'Secrets', 'Töne 🎵')
const rules = fc.constantFrom('Be kind.', 'Be kind. ', 'Quote no poems.\n\nNot one.')
const unversioned = {
  name: nullable(names),
  description: nullable(fc.constantFrom('', ' ', 'first', 'first\n', 'second')),
}
const namesOnly: Arbitrary<Fields> = record(unversioned)
const plainFields: Arbitrary<Fields> = record({
  ...unversioned,
  rule: nullable(rules),
  direction: nullable(fc.constantFrom('request', 'response', 'both')),
  mode: nullable(fc.constantFrom('monitoring', 'enforcing')),
  match_threshold_basis_points: nullable(fc.constantFrom(1, 5000, 9999)),
})
const goodProject = fc.nat(2)
const anyProject = fc.oneof({ weight: 8, arbitrary: goodProject }, fc.integer({ min: 3, max: 4 }))
const scopes = fc.oneof<Arbitrary<Fields>[]>(
  fc.constant({}),
  record({
    scope: nullable(fc.constantFrom('organization', 'projects', 'unattached')),
    project_ids: nullable(fc.array(anyProject, { maxLength: 4 })),
  }),
  fc.record({
    scope: fc.constant('projects' as const),
    project_ids: fc.array(goodProject, { minLength: 1, maxLength: 4 }),
  }),
  fc.constantFrom(
    { scope: 'organization', project_ids: [] },
    { scope: 'unattached', project_ids: [] },
  ),
)
const fields = fc.tuple(plainFields, scopes).map(([plain, scope]) => ({ ...plain, ...scope }))

/** What an edit can start from: nothing, or something that changes nothing or leads back. */
const likenesses = {
  nothing: () => ({}),
  draft: ({ draft: { base_version: _, ...content } }) => content,
  published: ({ versions }) => versions.at(-1) ?? {},
  oldest: ({ versions }) => versions[0] ?? {},
  reordered: ({ draft: { project_ids: ids } }) => ({ project_ids: [...ids.toReversed(), ...ids] }),
} satisfies Record<string, (policy: ModelPolicy) => Partial<PolicyContent>>
type Likeness = keyof typeof likenesses

export type Edit = { like: Likeness; fields: Fields }
export const edits: Arbitrary<Edit> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ like: fc.constant<Likeness>('nothing'), fields }) },
  {
    weight: 3,
    arbitrary: fc.record({
      like: fc.constantFrom<Likeness>('draft', 'published', 'oldest', 'reordered'),
      fields: fc.oneof(fc.constant({}), namesOnly, plainFields),
    }),
  },
)

export type Wish = Fields & { name: string; rule: string }
export const wishes: Arbitrary<Wish> = fc
  .tuple(fields, names, rules)
  .map(([others, name, rule]) => ({ ...others, name, rule }))

/** A wish or an edit as it is sent. */
export function bodyOf(fields: Fields, projects: readonly string[]) {
  const { project_ids, ...others } = fields
  if (!project_ids) return { ...others, ...(project_ids === null && { project_ids }) }
  return { ...others, project_ids: project_ids.map((place) => projects[place] ?? '') }
}

export const startOf = (edit: Edit, policy: ModelPolicy) => likenesses[edit.like](policy)
