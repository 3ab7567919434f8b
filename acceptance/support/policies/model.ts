import type {
  PolicyContent,
  PolicyCreation,
  PolicyEdit,
  PolicyState,
  PolicyVersion,
} from '@gatehouse/contract/policy'
import fc, { type Arbitrary } from 'fast-check'

// A model of a policy's lifecycle, written from docs/specification/policies.md and independent of the service's code:
// where the two differ, one of them is wrong. Everything here is pure. The end of the file generates random creations
// and edits.

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

/** Values that the service chooses; the model copies them from its answers. */
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
  /** Part of the message. */
  readonly messagePart?: string
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

/** 404 is checked before the revision, and the revision before everything else. */
function refuse(policy: ModelPolicy, revision: number, location = 'body'): Refusal | null {
  if (policy.isDeleted) return policyNotFound
  if (policy.revision === revision) return null
  const conflict = refusal(409, 'revision_conflict', `${location}.revision`)
  return { ...conflict, messagePart: `revision ${policy.revision}.` }
}

const unique = (ids: readonly string[]) => ids.filter((id, index) => ids.indexOf(id) === index)

/** Project ids are compared as a set; everything else must be equal. */
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

/** Scope and project ids must be consistent; then every project that the request names must be active. */
function refuseContent(content: PolicyContent, sent: readonly string[], isActive: IsActive) {
  const namesProjects = content.project_ids.length > 0
  if (namesProjects !== (content.scope === 'projects')) {
    return refusal(422, 'invalid_scope', 'body.project_ids')
  }
  const unknown = sent.findIndex((id) => !isActive(id))
  if (unknown === -1) return null
  return refusal(422, 'unknown_project', `body.project_ids[${unknown}]`)
}

/** A new policy is a draft at revision 1; absent members get their defaults. */
export function create(creation: PolicyCreation, isActive: IsActive): Outcome {
  const draft = {
    rule: creation.rule,
    direction: creation.direction ?? 'both',
    mode: creation.mode ?? 'monitoring',
    scope: creation.scope ?? 'unattached',
    project_ids: unique(creation.project_ids ?? []),
    match_threshold_basis_points: creation.match_threshold_basis_points ?? null,
    base_version: null,
  }
  const refused = refuseContent(draft, creation.project_ids ?? [], isActive)
  if (refused) return refused
  const name = creation.name.trim()
  const description = (creation.description ?? '').trim()
  return { name, description, state: 'draft', revision: 1, draft, versions: [], isDeleted: false }
}

/** Allowed in every state. Equal content changes nothing, not even the order of the project ids. */
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

/** Publishing a paused policy creates a version, but only resuming puts it in force. */
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

/** Only a policy in force can be paused. */
export function pause(policy: ModelPolicy, revision: number): Outcome {
  const refused = refuse(policy, revision)
  if (refused) return refused
  const isActive = policy.state === 'monitoring' || policy.state === 'enforcing'
  return isActive ? raised({ ...policy, state: 'paused' }) : refusal(409, 'policy_not_active')
}

/** Only a paused policy can be resumed; its state becomes the mode of the published version. */
export function resume(policy: ModelPolicy, revision: number): Outcome {
  const refused = refuse(policy, revision)
  if (refused) return refused
  const mode = policy.versions.at(-1)?.mode
  if (policy.state !== 'paused' || !mode) return refusal(409, 'policy_not_paused')
  return raised({ ...policy, state: mode })
}

/** Allowed in every state; the revision is in the query. */
export function remove(policy: ModelPolicy, revision: number): Outcome {
  return refuse(policy, revision, 'query') ?? { ...policy, isDeleted: true }
}

/** Follows the rules of an edit: restoring what the draft already contains changes nothing. */
export function restore(policy: ModelPolicy, version: number, revision: number): Outcome {
  const refused = refuse(policy, revision)
  if (refused) return refused
  const content = policy.versions[version - 1]
  if (!content) return versionNotFound
  const isUnchanged = policy.draft.base_version === version && isSameContent(policy.draft, content)
  return isUnchanged ? policy : raised({ ...policy, draft: { ...content, base_version: version } })
}

const raised = (policy: ModelPolicy): ModelPolicy => ({ ...policy, revision: policy.revision + 1 })

/** True before the first publish, and when the draft differs from the published version. */
function hasUnpublishedChanges({ draft, versions }: ModelPolicy): boolean {
  const published = versions.at(-1)
  return published === undefined || !isSameContent(draft, published)
}

/** The expected item in a list: without draft and published version. */
export const summaryOf = (policy: ModelPolicy, { id, created_at, updated_at }: Facts) => ({
  id,
  object: 'organization.policy',
  created_at,
  updated_at,
  name: policy.name,
  description: policy.description,
  state: policy.state,
  revision: policy.revision,
  current_version: policy.versions.length || null,
  has_unpublished_changes: hasUnpublishedChanges(policy),
  managed_by: null,
})

/** The expected answer to a read. */
export const viewOf = (policy: ModelPolicy, facts: Facts) => ({
  ...summaryOf(policy, facts),
  draft: policy.draft,
  published: versionsOf(policy, facts).at(-1) ?? null,
})

/** All versions, the oldest first; only the last one is current. */
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
 * The expected page (docs/specification/conventions.md#lists). Items and cursors are passed oldest first; a cursor
 * stays valid after its item is deleted.
 */
export function pageOf(
  items: readonly { id?: string }[],
  cursors: readonly string[],
  { limit = 20, order = 'asc', after }: PageQuery,
) {
  if (after !== undefined && !cursors.includes(after)) return invalidCursor
  const inOrder = <T>(list: readonly T[]) => (order === 'desc' ? list.toReversed() : list)
  const ids = inOrder(cursors)
  const start = after === undefined ? -1 : ids.indexOf(after)
  const rest = inOrder(items).filter(({ id = '' }) => ids.indexOf(id) > start)
  const data = rest.slice(0, limit)
  return {
    object: 'list',
    data,
    has_more: rest.length > limit,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  }
}

// Request bodies. They use few values, so that edits often restore an earlier content.

type Fields = Partial<Omit<PolicyEdit, 'revision' | 'project_ids'>> & {
  /** Indexes into a list of projects, of which the first three are valid and the others are not. */
  project_ids?: number[] | null
}

const record = <T>(fields: { [Name in keyof T]: Arbitrary<T[Name]> }) =>
  fc.record(fields, { requiredKeys: [], noNullPrototype: true })
const nullable = <T>(values: Arbitrary<T>) => fc.option(values, { freq: 6 })

const names = fc.constantFrom('Tone', ' Tone ', 'Secrets', 'Töne 🎵')
/** They can be published in every mode. */
const rules = fc.constantFrom(
  'cel: text.contains("unkind")',
  'cel: text.contains("unkind") ',
  'cel: text.contains("poem")\n\n || false',
)
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

/** The content that an edit starts from, before its own fields are applied. */
const editBases = {
  nothing: () => ({}),
  draft: ({ draft: { base_version: _, ...content } }) => content,
  published: ({ versions }) => versions.at(-1) ?? {},
  oldest: ({ versions }) => versions[0] ?? {},
  reordered: ({ draft: { project_ids: ids } }) => ({ project_ids: [...ids.toReversed(), ...ids] }),
} satisfies Record<string, (policy: ModelPolicy) => Partial<PolicyContent>>
type EditBase = keyof typeof editBases

export type Edit = { base: EditBase; fields: Fields }
export const edits: Arbitrary<Edit> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ base: fc.constant<EditBase>('nothing'), fields }) },
  {
    weight: 3,
    arbitrary: fc.record({
      base: fc.constantFrom<EditBase>('draft', 'published', 'oldest', 'reordered'),
      fields: fc.oneof(fc.constant({}), namesOnly, plainFields),
    }),
  },
)

export type Creation = Fields & { name: string; rule: string }
export const creations: Arbitrary<Creation> = fc
  .tuple(fields, names, rules)
  .map(([others, name, rule]) => ({ ...others, name, rule }))

/** The request body of a creation or an edit. */
export function bodyOf(fields: Fields, projects: readonly string[]) {
  const { project_ids, ...others } = fields
  if (!project_ids) return { ...others, ...(project_ids === null && { project_ids }) }
  return { ...others, project_ids: project_ids.map((index) => projects[index] ?? '') }
}

export const startOf = (edit: Edit, policy: ModelPolicy) => editBases[edit.base](policy)
