import { createClient } from '@gatehouse/contract/client'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import {
  createPolicy,
  deletePolicy,
  listPolicies,
  listPolicyVersions,
  pausePolicy,
  Policy,
  type PolicyContent,
  type PolicyCreation,
  type PolicyEdit,
  publishPolicy,
  restorePolicyVersion,
  resumePolicy,
  retrievePolicy,
  retrievePolicyVersion,
  updatePolicy,
} from '@gatehouse/contract/policy'
import { archiveProject, createProject, Project } from '@gatehouse/contract/project'
import { revisionMax } from '@gatehouse/contract/revision'
import { createOrganization } from '@gatehouse/tools/start-stack'
import { sizeOf } from '@gatehouse/tools/testing/size-of'
import fc, { type Arbitrary } from 'fast-check'
import { expect, test } from 'vitest'

import { type Answer, call, codeOf, type Sent } from './support/call.ts'
import * as model from './support/policies/model.ts'
import { useStack } from './support/use-stack.ts'

// Random sequences of all operations on policies, over HTTP. After every step the policy must match a model written
// from docs/specification/policies.md. POLICY_SEQUENCES sets the number of sequences, POLICY_SEED repeats a run.

const sequences = sizeOf({ usual: 200, long: 10_000, variable: 'POLICY_SEQUENCES' })
const seed = Number(process.env['POLICY_SEED'] ?? Date.now() % 2 ** 31)
const lanesAtOnce = 8
const stepsMax = 30

const stack = useStack({ models: null })

type Tracked = { policy: model.ModelPolicy; facts: model.Facts }

/** The policies that one sequence has created, oldest first. */
type World = { policies: Tracked[] }

/** Sequences run concurrently, each lane in its own organization, so that its lists contain nothing else. */
type Lane = {
  send(endpoint: Endpoint, sent?: Sent): Promise<Answer>
  projects: string[]
  archived: Set<string>
  /** A failed sequence has left policies behind. */
  isLittered: boolean
  /** A policy with a version, and a project, that exist in another organization. */
  stranger: Tracked
  strangersProject: string
}

type Command = fc.AsyncCommand<World, Lane>

/** How often each kind of step had which outcome. */
const outcomes = new Map<string, number>()
const note = (label: string) => outcomes.set(label, (outcomes.get(label) ?? 0) + 1)

const command =
  <Input>(kind: string, run: (world: World, lane: Lane, input: Input) => Promise<void>) =>
  (input: Input): Command => ({
    check: () => true,
    async run(world, lane) {
      note('steps')
      await run(world, lane, input)
    },
    toString: () => `${kind} ${JSON.stringify(input)}`,
  })

function weighted<const T>(...choices: (readonly [weight: number, value: T])[]): Arbitrary<T> {
  return fc.oneof(
    ...choices.map(([weight, value]) => ({ weight, arbitrary: fc.constant<T>(value) })),
  )
}

type Target = { among: 'live' | 'all' | 'strangers'; nth: number }
const target: Arbitrary<Target> = fc.record({
  among: weighted<Target['among']>([20, 'live'], [2, 'all'], [1, 'strangers']),
  nth: fc.nat(3),
})
/** The difference between the revision that is sent and the current one. */
const offset = weighted([16, 0], [1, -1], [1, -2], [1, 1], [1, revisionMax])
type VersionPick = number | 'next' | 'last'
const pick = weighted<VersionPick>([4, 0], [4, 1], [4, 2], [4, 3], [2, 'next'], [1, 'last'])

const isActive = (lane: Lane) => (id: string) =>
  lane.projects.includes(id) && !lane.archived.has(id)

/** The projects of a lane, then two that are not valid for it. */
const projectsOf = (lane: Lane) => [...lane.projects, lane.strangersProject, 'proj_of_nobody']

// The steps, and their expected outcomes.

const isLive = ({ policy }: Tracked) => !policy.isDeleted

function choose({ policies }: World, { stranger }: Lane, { among, nth }: Target): Tracked {
  if (among === 'strangers') return stranger
  const live = policies.filter(isLive)
  const candidates = among === 'live' && live.length > 0 ? live : policies
  return candidates[nth % candidates.length] ?? stranger
}

const create = command('create', async (world, lane, creation: model.Creation) => {
  const body = model.bodyOf(creation, projectsOf(lane)) as PolicyCreation
  const outcome = model.create(body, isActive(lane))
  const sentAt = seconds()
  const answer = await lane.send(createPolicy, { body })
  if (model.isRefusal(outcome)) return expectRefusal('create', answer, outcome)
  const made = { policy: outcome, facts: factsOf(answer, sentAt) }
  expectAnswer('create', answer, model.viewOf(made.policy, made.facts))
  world.policies.push(made)
  await expectStored(lane, made)
})

type At = { target: Target; offset: number }
type PlannedRequest = Sent & { outcome: model.Outcome }

/** A change of an existing policy: `plan` returns the request and the outcome in the model. */
function change<Extra extends object>(
  kind: string,
  endpoint: Endpoint,
  plan: (
    policy: model.ModelPolicy,
    input: Extra & { revision: number },
    lane: Lane,
  ) => PlannedRequest,
) {
  return command(kind, async (world, lane, input: At & Extra) => {
    const tracked = choose(world, lane, input.target)
    const { policy, facts } = tracked
    const revision = Math.min(Math.max(policy.revision + input.offset, 1), revisionMax)
    const { outcome, params, ...sent } = plan(policy, { ...input, revision }, lane)
    const sentAt = seconds()
    const answer = await lane.send(endpoint, {
      body: { revision },
      ...sent,
      params: { policy_id: facts.id, ...params },
    })
    if (model.isRefusal(outcome)) expectRefusal(kind, answer, outcome)
    else expectDone(kind, tracked, outcome, { answer, sentAt })
    if (!policy.isDeleted) await expectStored(lane, tracked)
  })
}

const update = change<{ edit: model.Edit }>('update', updatePolicy, (policy, input, lane) => {
  const { edit, revision } = input
  const fields = model.bodyOf(edit.fields, projectsOf(lane))
  const body = { ...model.startOf(edit, policy), ...fields, revision } as PolicyEdit
  return { body, outcome: model.update(policy, body, isActive(lane)) }
})
const publish = change('publish', publishPolicy, (policy, { revision }, lane) => ({
  outcome: model.publish(policy, revision, isActive(lane)),
}))
const pause = change('pause', pausePolicy, (policy, { revision }) => ({
  outcome: model.pause(policy, revision),
}))
const resume = change('resume', resumePolicy, (policy, { revision }) => ({
  outcome: model.resume(policy, revision),
}))
const remove = change('delete', deletePolicy, (policy, { revision }) => ({
  query: { revision },
  body: undefined,
  outcome: model.remove(policy, revision),
}))
const restore = change<{ pick: VersionPick }>('restore', restorePolicyVersion, (policy, input) => {
  const version = versionOf(policy, input.pick)
  const outcome = model.restore(policy, version, input.revision)
  return { params: { version: String(version) }, outcome }
})

/** The number of an existing version, of the next one, or the highest possible number. */
function versionOf({ versions }: model.ModelPolicy, pick: VersionPick) {
  if (typeof pick === 'number' && versions.length > 0) return 1 + (pick % versions.length)
  return pick === 'last' ? revisionMax : versions.length + 1
}

const retrieve = command('retrieve', async (world, lane, at: Target) =>
  expectStored(lane, choose(world, lane, at), 'retrieve'),
)

type VersionRead = { target: Target; pick: VersionPick }
const readVersion = command('version', async (world, lane, input: VersionRead) => {
  const { policy, facts } = choose(world, lane, input.target)
  const number = versionOf(policy, input.pick)
  const params = { policy_id: facts.id, version: String(number) }
  const answer = await lane.send(retrievePolicyVersion, { params })
  if (policy.isDeleted) return expectRefusal('version', answer, model.policyNotFound)
  const version = model.versionsOf(policy, facts)[number - 1]
  if (!version) return expectRefusal('version', answer, model.versionNotFound)
  expectAnswer('version', answer, version)
})

type Pages = { page: Omit<model.PageQuery, 'after'>; after: number | 'strangers' | null }
const pages: Arbitrary<Pages> = fc.record({
  page: fc.record(
    { limit: fc.constantFrom(1, 2, 100), order: fc.constantFrom('asc', 'desc') },
    { requiredKeys: [], noNullPrototype: true },
  ),
  after: fc.oneof(fc.constant(null), fc.nat(3), fc.constant('strangers' as const)),
})

type Items = readonly { id: string }[]
function cursorOf({ after }: Pages, own: Items, strangers: Items): string | undefined {
  if (after === null) return undefined
  return after === 'strangers' ? strangers[0]?.id : own[after % own.length]?.id
}

const listVersions = command('versions', async (world, lane, input: Pages & { target: Target }) => {
  const { policy, facts } = choose(world, lane, input.target)
  const after = cursorOf(input, facts.versions, lane.stranger.facts.versions)
  const params = { policy_id: facts.id }
  const answer = await lane.send(listPolicyVersions, { params, query: { ...input.page, after } })
  if (policy.isDeleted) return expectRefusal('versions', answer, model.policyNotFound)
  const query: model.PageQuery = { order: 'desc', ...input.page, after } // newest first by default
  const cursors = facts.versions.map(({ id }) => id)
  expectPage('versions', answer, model.pageOf(model.versionsOf(policy, facts), cursors, query))
})

const list = command('list', async ({ policies }, lane, input: Pages) => {
  const everMade = policies.map(({ facts }) => facts) // a deleted policy stays a valid cursor
  const query = { ...input.page, after: cursorOf(input, everMade, [lane.stranger.facts]) }
  const answer = await lane.send(listPolicies, { query })
  const live = policies.filter(isLive).map(({ policy, facts }) => model.summaryOf(policy, facts))
  const cursors = everMade.map(({ id }) => id)
  expectPage('list', answer, model.pageOf(live, cursors, query))
})

/** Archives a project, preferably one that a draft names. */
const archive = command('archive', async (world, lane, at: Target) => {
  const named = choose(world, lane, at).policy.draft.project_ids
  const candidates = named.length > 0 ? named : lane.projects
  const project_id = candidates[at.nth % candidates.length] ?? ''
  lane.archived.add(project_id)
  const { status, text } = await lane.send(archiveProject, { params: { project_id } })
  if (status !== 200) throw new Error(text)
})

const at = { target, offset }
const steps: readonly (readonly [weight: number, Arbitrary<Command>])[] = [
  [2, model.creations.map(create)],
  [14, fc.record({ ...at, edit: model.edits }).map(update)],
  [12, fc.record(at).map(publish)],
  [4, fc.record(at).map(pause)],
  [4, fc.record(at).map(resume)],
  [1, fc.record(at).map(remove)],
  [6, fc.record({ ...at, pick }).map(restore)],
  [1, target.map(retrieve)],
  [2, fc.record({ target, pick }).map(readVersion)],
  [2, fc.tuple(pages, target).map(([each, target]) => listVersions({ ...each, target }))],
  [2, pages.map(list)],
  [2, target.map(archive)],
]
const step = fc.oneof(...steps.map(([weight, arbitrary]) => ({ weight, arbitrary })))

// The checks.

const seconds = () => Math.floor(Date.now() / 1000)

function expectSince(sentAt: number, time: number) {
  expect(time).toBeGreaterThanOrEqual(sentAt)
  expect(time).toBeLessThanOrEqual(seconds())
}

function expectRefusal(kind: string, answer: Answer, refusal: model.Refusal) {
  const { status, code, param, messagePart } = refusal
  note(`${kind} ${answer.status} ${codeOf(answer) ?? ''}`)
  const { error } = answer.json as { error?: { param: string | null; message: string } }
  const got = { status: answer.status, code: codeOf(answer), param: error?.param }
  expect(got, answer.text).toEqual({ status, code, param })
  expect(error?.message).toContain(messagePart ?? '')
  expect(answer.headers.get('x-should-retry')).toBe(status === 409 ? 'false' : null)
}

function expectAnswer(kind: string, { status, text, json }: Answer, expected: unknown) {
  note(`${kind} ${status}`)
  expect(json, `${status} ${text}`).toEqual(expected)
}

/** Copies the id and the time that the service chose for a new policy. */
function factsOf({ json, text }: Answer, sentAt: number): model.Facts {
  const made = Policy.safeParse(json)
  if (!made.success) throw new Error(`no policy was created: ${text}`)
  const { id, created_at } = made.data
  expectSince(sentAt, created_at)
  return { id, created_at, updated_at: created_at, versions: [] }
}

type Answered = { answer: Answer; sentAt: number }

function expectDone(kind: string, tracked: Tracked, outcome: model.ModelPolicy, got: Answered) {
  const { status, text, json } = got.answer
  const hasChanged = outcome !== tracked.policy
  note(`${kind} ${status} ${outcome.state}${hasChanged ? '' : ', unchanged'}`)
  expect(status, text).toBe(200)
  const { id } = tracked.facts
  if (outcome.isDeleted) {
    expect(json).toEqual({ id, object: 'organization.policy.deleted', deleted: true })
  } else {
    if (hasChanged) tracked.facts = copyFacts(tracked, outcome, got)
    expect(json).toEqual(model.viewOf(outcome, tracked.facts))
  }
  tracked.policy = outcome
}

/** Copies the time that the service chose for a change, and the id of a new version. */
function copyFacts(before: Tracked, { versions }: model.ModelPolicy, { answer, sentAt }: Answered) {
  const { updated_at, published } = Policy.parse(answer.json)
  expectSince(sentAt, updated_at)
  const facts = { ...before.facts, updated_at }
  const content = versions[facts.versions.length]
  if (!content || !published) return facts
  const { id, sha256, published_at } = published
  expectSince(sentAt, published_at)
  expectHash(content, sha256)
  return { ...facts, versions: [...facts.versions, { id, sha256, published_at }] }
}

const hashes = new Map<string, string>()

/** Two contents have the same hash if and only if they are equal, in every organization. */
function expectHash({ project_ids, ...content }: PolicyContent, sha256: string) {
  const canonical = JSON.stringify({ ...content, ids: project_ids.toSorted() })
  expect(hashes.get(canonical) ?? sha256).toBe(sha256)
  expect(hashes.get(sha256) ?? canonical).toBe(canonical)
  hashes.set(canonical, sha256).set(sha256, canonical)
}

async function expectStored(lane: Lane, { policy, facts }: Tracked, kind = 'check') {
  const answer = await lane.send(retrievePolicy, { params: { policy_id: facts.id } })
  if (policy.isDeleted) return expectRefusal(kind, answer, model.policyNotFound)
  expectAnswer(kind, answer, model.viewOf(policy, facts))
}

function expectPage(kind: string, answer: Answer, page: object) {
  if (model.isRefusal(page)) return expectRefusal(kind, answer, page)
  expectAnswer(kind, answer, page)
}

// The sequences.

/** Creates a policy in another organization. For a lane it does not exist, like a deleted one. */
async function createStranger(): Promise<Tracked> {
  const { base_url: baseUrl, admin_key: credential } = stack().description
  const client = createClient({ baseUrl, credential })
  const creation = { name: 'Theirs', rule: 'cel: text.contains("unkind")' }
  const { id } = await client.call(createPolicy, { body: creation })
  const input = { params: { policy_id: id }, query: {}, body: { revision: 1 } }
  const { created_at, updated_at, published } = await client.call(publishPolicy, input)
  const policy = model.create(creation, () => true) as model.ModelPolicy
  const facts = { id, created_at, updated_at, versions: published ? [published] : [] }
  return { policy: { ...policy, isDeleted: true }, facts }
}

async function openLane(number: number, stranger: Tracked): Promise<Lane> {
  const { service, description } = stack()
  const { admin_key: credential } = await createOrganization(service, `Lane ${number}`)
  return {
    send: (endpoint, sent) => call(description.base_url, endpoint, { credential, ...sent }),
    projects: ['none yet', 'none yet', 'none yet'],
    archived: new Set(['none yet']),
    isLittered: false,
    stranger,
    strangersProject: description.project_id,
  }
}

/** Starts a sequence with three active projects and one minimal policy. */
async function begin(lane: Lane): Promise<World> {
  for (const [index, id] of lane.projects.entries()) {
    if (!lane.archived.has(id)) continue
    const { json } = await lane.send(createProject, { body: { name: `Project ${index}` } })
    lane.projects[index] = Project.parse(json).id
  }
  if (lane.isLittered) await cleanUp(lane)
  lane.isLittered = true
  const world: World = { policies: [] }
  await create({ name: 'First', rule: 'cel: text.contains("unkind")' }).run(world, lane)
  return world
}

async function cleanUp(lane: Lane) {
  const { json } = await lane.send(listPolicies, { query: { limit: 100 } })
  for (const { id, revision } of listPolicies.response.parse(json).data) {
    await lane.send(deletePolicy, { params: { policy_id: id }, query: { revision } })
  }
}

/** Compares all remaining policies once more, and deletes them. */
async function finish(world: World, lane: Lane) {
  const everything: Pages = { page: { limit: 100 }, after: null }
  const first: Target = { among: 'live', nth: 0 }
  await list(everything).run(world, lane)
  while (world.policies.some(isLive)) {
    await listVersions({ ...everything, target: first }).run(world, lane)
    await remove({ target: first, offset: 0 }).run(world, lane)
  }
  await list(everything).run(world, lane)
  lane.isLittered = false
  note('sequences')
}

let failedLane: Lane | undefined

async function runLane(lane: Lane, index: number) {
  const commands = fc.commands([step], { maxCommands: stepsMax, size: 'max' })
  const sequence = fc.asyncProperty(commands, async (chosen) => {
    // While one lane shrinks its failing sequence, the other lanes stop, because they would only slow it down.
    if (failedLane && failedLane !== lane) return
    try {
      const world = await begin(lane)
      await fc.asyncModelRun(() => ({ model: world, real: lane }), chosen)
      await finish(world, lane)
    } catch (error) {
      failedLane ??= lane
      if (failedLane === lane) throw error
    }
  })
  await fc.assert(sequence, { numRuns: Math.ceil(sequences / lanesAtOnce), seed: seed + index })
}

const states = ['draft', 'monitoring', 'enforcing', 'paused']
const published = states.slice(1)

/** Outcomes that a run must have covered, or it proves little. */
const requiredOutcomes = [
  'create 201',
  'create 422 invalid_scope',
  'create 422 unknown_project',
  ...states.flatMap((state) => [`update 200 ${state}`, `update 200 ${state}, unchanged`]),
  'update 422 invalid_scope',
  'update 422 unknown_project',
  ...published.map((state) => `publish 200 ${state}`),
  'publish 409 no_unpublished_changes',
  'publish 409 draft_not_publishable',
  'pause 200 paused',
  'pause 409 policy_not_active',
  'resume 200 monitoring',
  'resume 200 enforcing',
  'resume 409 policy_not_paused',
  ...states.map((state) => `delete 200 ${state}`),
  ...published.flatMap((state) => [`restore 200 ${state}`, `restore 200 ${state}, unchanged`]),
  'restore 404 version_not_found',
  ...['update', 'publish', 'pause', 'resume', 'delete', 'restore'].flatMap((change) => [
    `${change} 404 policy_not_found`,
    `${change} 409 revision_conflict`,
  ]),
  'retrieve 200',
  'retrieve 404 policy_not_found',
  'version 200',
  'version 404 version_not_found',
  'version 404 policy_not_found',
  'versions 200',
  'versions 400 invalid_cursor',
  'versions 404 policy_not_found',
  'list 200',
  'list 400 invalid_cursor',
]

const report = () =>
  Object.fromEntries([...outcomes].toSorted(([left], [right]) => left.localeCompare(right)))

test(
  `${sequences} random sequences: after every step the policy matches the specification`,
  async () => {
    console.log(`policy sequences: seed ${seed}`)
    const stranger = await createStranger()
    const lanes = await Promise.all(
      Array.from({ length: lanesAtOnce }, (_, number) => openLane(number, stranger)),
    )
    await Promise.all(lanes.map(runLane))
    console.log(`seed ${seed}`, report())
    expect(requiredOutcomes.filter((label) => !outcomes.has(label))).toEqual([])
  },
  sequences * 900, // a busy machine only takes longer
)
