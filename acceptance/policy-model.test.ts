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
  revisionMax,
  updatePolicy,
} from '@gatehouse/contract/policy'
import { archiveProject, createProject, Project } from '@gatehouse/contract/project'
import { createOrganization } from '@gatehouse/tools/start-stack'
import fc, { type Arbitrary } from 'fast-check'
import { expect, test } from 'vitest'

import { type Answer, call, codeOf, type Sent } from './support/call.ts'
import * as model from './support/policy-model.ts'
import { useStack } from './support/use-stack.ts'

// Random sequences of everything that can be done to policies, over HTTP. After every step the policy
// must be what a model written from the decisions says. POLICY_SEQUENCES sets how many sequences,
// POLICY_SEED repeats a run.

const sequences = Number(process.env['POLICY_SEQUENCES'] ?? 1000)
const seed = Number(process.env['POLICY_SEED'] ?? Date.now() % 2 ** 31)
const lanesAtOnce = 8
const stepsMax = 30

const stack = useStack({ models: null })

type Tracked = { policy: model.ModelPolicy; facts: model.Facts }

/** What one sequence has made, the oldest first. */
type World = { policies: Tracked[] }

/** Sequences run side by side, each lane in an organization of its own: its lists are all ours. */
type Lane = {
  send(endpoint: Endpoint, sent?: Sent): Promise<Answer>
  projects: string[]
  archived: Set<string>
  /** A sequence failed here and has left its policies. */
  isLittered: boolean
  /** A policy with a version, and a project, that exist in another organization. */
  stranger: Tracked
  strangersProject: string
}

type Command = fc.AsyncCommand<World, Lane>

/** How often each kind of step met which answer. */
const met = new Map<string, number>()
const note = (label: string) => met.set(label, (met.get(label) ?? 0) + 1)

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
/** How far the revision that is sent lies from the right one. */
const offset = weighted([16, 0], [1, -1], [1, -2], [1, 1], [1, revisionMax])
type VersionPick = number | 'next' | 'last'
const pick = weighted<VersionPick>([4, 0], [4, 1], [4, 2], [4, 3], [2, 'next'], [1, 'last'])

const isActive = (lane: Lane) => (id: string) =>
  lane.projects.includes(id) && !lane.archived.has(id)

/** The projects of a lane, then those it cannot name. */
const projectsOf = (lane: Lane) => [...lane.projects, lane.strangersProject, 'proj_of_nobody']

// What is done, and what must come of it.

const isLive = ({ policy }: Tracked) => !policy.isDeleted

function choose({ policies }: World, { stranger }: Lane, { among, nth }: Target): Tracked {
  if (among === 'strangers') return stranger
  const live = policies.filter(isLive)
  const candidates = among === 'live' && live.length > 0 ? live : policies
  return candidates[nth % candidates.length] ?? stranger
}

const create = command('create', async (world, lane, wish: model.Wish) => {
  const body = model.bodyOf(wish, projectsOf(lane)) as PolicyCreation
  const outcome = model.create(body, isActive(lane))
  const askedAt = seconds()
  const answer = await lane.send(createPolicy, { body })
  if (model.isRefusal(outcome)) return expectRefusal('create', answer, outcome)
  const made = { policy: outcome, facts: factsOf(answer, askedAt) }
  expectAnswer('create', answer, model.viewOf(made.policy, made.facts))
  world.policies.push(made)
  await expectStored(lane, made)
})

type At = { target: Target; offset: number }
type Asked = Sent & { outcome: model.Outcome }

/** A change of an existing policy: `ask` says what is sent and what the model makes of it. */
function change<Extra extends object>(
  kind: string,
  endpoint: Endpoint,
  ask: (policy: model.ModelPolicy, input: Extra & { revision: number }, lane: Lane) => Asked,
) {
  return command(kind, async (world, lane, input: At & Extra) => {
    const tracked = choose(world, lane, input.target)
    const { policy, facts } = tracked
    const revision = Math.min(Math.max(policy.revision + input.offset, 1), revisionMax)
    const { outcome, params, ...sent } = ask(policy, { ...input, revision }, lane)
    const askedAt = seconds()
    const answer = await lane.send(endpoint, {
      ...{ body: { revision }, ...sent },
      params: { policy_id: facts.id, ...params },
    })
    if (model.isRefusal(outcome)) expectRefusal(kind, answer, outcome)
    else expectDone(kind, tracked, outcome, { answer, askedAt })
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

/** One of the versions, or the next to come, or the last that could ever be. */
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

type Places = readonly { id: string }[]
function cursorOf({ after }: Pages, own: Places, strangers: Places): string | undefined {
  if (after === null) return undefined
  return after === 'strangers' ? strangers[0]?.id : own[after % own.length]?.id
}

const listVersions = command('versions', async (world, lane, input: Pages & { target: Target }) => {
  const { policy, facts } = choose(world, lane, input.target)
  const after = cursorOf(input, facts.versions, lane.stranger.facts.versions)
  const params = { policy_id: facts.id }
  const answer = await lane.send(listPolicyVersions, { params, query: { ...input.page, after } })
  if (policy.isDeleted) return expectRefusal('versions', answer, model.policyNotFound)
  const query: model.PageQuery = { order: 'desc', ...input.page, after } // newest first (G10.5)
  const places = facts.versions.map(({ id }) => id)
  expectPage('versions', answer, model.pageOf(model.versionsOf(policy, facts), places, query))
})

const list = command('list', async ({ policies }, lane, input: Pages) => {
  const everMade = policies.map(({ facts }) => facts) // a deleted one keeps its place (G4.7)
  const query = { ...input.page, after: cursorOf(input, everMade, [lane.stranger.facts]) }
  const answer = await lane.send(listPolicies, { query })
  const live = policies.filter(isLive).map(({ policy, facts }) => model.summaryOf(policy, facts))
  const places = everMade.map(({ id }) => id)
  expectPage('list', answer, model.pageOf(live, places, query))
})

/** A project goes away, preferably one that a draft names. */
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
  [2, model.wishes.map(create)],
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

// What is checked.

const seconds = () => Math.floor(Date.now() / 1000)

function expectSince(askedAt: number, time: number) {
  expect(time).toBeGreaterThanOrEqual(askedAt)
  expect(time).toBeLessThanOrEqual(seconds())
}

function expectRefusal(kind: string, answer: Answer, { status, code, param, says }: model.Refusal) {
  note(`${kind} ${answer.status} ${codeOf(answer) ?? ''}`)
  const { error } = answer.json as { error?: { param: string | null; message: string } }
  const got = { status: answer.status, code: codeOf(answer), param: error?.param }
  expect(got, answer.text).toEqual({ status, code, param })
  expect(error?.message).toContain(says ?? '')
  expect(answer.headers.get('x-should-retry')).toBe(status === 409 ? 'false' : null)
}

function expectAnswer(kind: string, { status, text, json }: Answer, expected: unknown) {
  note(`${kind} ${status}`)
  expect(json, `${status} ${text}`).toEqual(expected)
}

/** The service may choose the id of a new policy. */
function factsOf({ json, text }: Answer, askedAt: number): model.Facts {
  const made = Policy.safeParse(json)
  if (!made.success) throw new Error(`no policy was created: ${text}`)
  const { id, created_at } = made.data
  expectSince(askedAt, created_at)
  return { id, created_at, updated_at: created_at, versions: [] }
}

type Answered = { answer: Answer; askedAt: number }

function expectDone(kind: string, tracked: Tracked, outcome: model.ModelPolicy, got: Answered) {
  const { status, text, json } = got.answer
  const hasChanged = outcome !== tracked.policy
  note(`${kind} ${status} ${outcome.state}${hasChanged ? '' : ', unchanged'}`)
  expect(status, text).toBe(200)
  const { id } = tracked.facts
  if (outcome.isDeleted) {
    expect(json).toEqual({ id, object: 'organization.policy.deleted', deleted: true })
  } else {
    if (hasChanged) tracked.facts = learn(tracked, outcome, got)
    expect(json).toEqual(model.viewOf(outcome, tracked.facts))
  }
  tracked.policy = outcome
}

/** The service may choose the time of a change, and of a new version also the id. */
function learn(before: Tracked, { versions }: model.ModelPolicy, { answer, askedAt }: Answered) {
  const { updated_at, published } = Policy.parse(answer.json)
  expectSince(askedAt, updated_at)
  const facts = { ...before.facts, updated_at }
  const content = versions[facts.versions.length]
  if (!content || !published) return facts
  const { id, sha256, published_at } = published
  expectSince(askedAt, published_at)
  expectHash(content, sha256)
  return { ...facts, versions: [...facts.versions, { id, sha256, published_at }] }
}

const hashes = new Map<string, string>()

/** Equal hashes and equal demands are the same thing, in every organization. */
function expectHash({ project_ids, ...content }: PolicyContent, sha256: string) {
  const demands = JSON.stringify({ ...content, ids: project_ids.toSorted() })
  expect(hashes.get(demands) ?? sha256).toBe(sha256)
  expect(hashes.get(sha256) ?? demands).toBe(demands)
  hashes.set(demands, sha256).set(sha256, demands)
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

/** A policy of another organization. For a lane it does not exist, no more than a deleted one. */
async function meetStranger(): Promise<Tracked> {
  const { base_url: baseUrl, admin_key: credential } = stack().description
  const client = createClient({ baseUrl, credential })
  const wish = { name: 'Theirs', rule: 'Be kind.' }
  const { id } = await client.call(createPolicy, { body: wish })
  const input = { params: { policy_id: id }, query: {}, body: { revision: 1 } }
  const { created_at, updated_at, published } = await client.call(publishPolicy, input)
  const policy = model.create(wish, () => true) as model.ModelPolicy
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

/** Three active projects, no policies but one, and that one as simple as can be. */
async function begin(lane: Lane): Promise<World> {
  for (const [index, id] of lane.projects.entries()) {
    if (!lane.archived.has(id)) continue
    const { json } = await lane.send(createProject, { body: { name: `Project ${index}` } })
    lane.projects[index] = Project.parse(json).id
  }
  if (lane.isLittered) await cleanUp(lane)
  lane.isLittered = true
  const world: World = { policies: [] }
  await create({ name: 'First', rule: 'Be kind.' }).run(world, lane)
  return world
}

async function cleanUp(lane: Lane) {
  const { json } = await lane.send(listPolicies, { query: { limit: 100 } })
  for (const { id, revision } of listPolicies.response.parse(json).data) {
    await lane.send(deletePolicy, { params: { policy_id: id }, query: { revision } })
  }
}

/** All that is left is compared once more, and removed. */
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
    // While one lane looks for the shortest sequence that fails, the others would only be in its way.
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

/** What a run must have met, or it has proven little. */
const interesting = [
  ...['create 201', 'create 422 invalid_scope', 'create 422 unknown_project'],
  ...states.flatMap((state) => [`update 200 ${state}`, `update 200 ${state}, unchanged`]),
  ...['update 422 invalid_scope', 'update 422 unknown_project'],
  ...published.map((state) => `publish 200 ${state}`),
  ...['publish 409 no_unpublished_changes', 'publish 409 draft_not_publishable'],
  ...['pause 200 paused', 'pause 409 policy_not_active'],
  ...['resume 200 monitoring', 'resume 200 enforcing', 'resume 409 policy_not_paused'],
  ...states.map((state) => `delete 200 ${state}`),
  ...published.flatMap((state) => [`restore 200 ${state}`, `restore 200 ${state}, unchanged`]),
  'restore 404 version_not_found',
  ...['update', 'publish', 'pause', 'resume', 'delete', 'restore'].flatMap((change) => [
    `${change} 404 policy_not_found`,
    `${change} 409 revision_conflict`,
  ]),
  ...['retrieve 200', 'retrieve 404 policy_not_found'],
  ...['version 200', 'version 404 version_not_found', 'version 404 policy_not_found'],
  ...['versions 200', 'versions 400 invalid_cursor', 'versions 404 policy_not_found'],
  ...['list 200', 'list 400 invalid_cursor'],
]

const report = () =>
  Object.fromEntries([...met].toSorted(([left], [right]) => left.localeCompare(right)))

test(
  `${sequences} random sequences: after every step a policy is what the decisions say`,
  async () => {
    console.log(`policy sequences: seed ${seed}`)
    const stranger = await meetStranger()
    const lanes = await Promise.all(
      Array.from({ length: lanesAtOnce }, (_, number) => openLane(number, stranger)),
    )
    await Promise.all(lanes.map(runLane))
    console.log(`seed ${seed}`, report())
    expect(interesting.filter((label) => !met.has(label))).toEqual([])
  },
  Math.max(300_000, sequences * 300),
)
