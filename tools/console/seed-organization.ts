import { createProjectApiKey, updateProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import { createMember, updateMember } from '@gatehouse/contract/members/member'
import { setProjectMember } from '@gatehouse/contract/members/project-member'
import { createProject, updateProject } from '@gatehouse/contract/project'
import type { Role } from '@gatehouse/contract/role'

type Seed = { baseUrl: string; adminKey: string }

const people: readonly (readonly [name: string, role: Role])[] = [
  ['Ada Lovelace', 'owner'],
  ['Grace Hopper', 'admin'],
  ['Alan Turing', 'policy_publisher'],
  ['Barbara Liskov', 'auditor'],
  ['Edsger Dijkstra', 'developer'],
  ['Hedy Lamarr', 'billing'],
]
const usd = 1_000_000

/** Projects, keys and members of a company, so that the pages of the console have something to say. */
export async function seedOrganization({ baseUrl, adminKey }: Seed) {
  const client = createClient({ baseUrl, credential: adminKey })
  const members: Record<string, string> = {}
  for (const [name, role] of people) {
    const email = `${name.split(' ')[0]?.toLowerCase() ?? ''}@example.com`
    const member = await client.call(createMember, { body: { email, name, role } })
    members[role] = member.id
  }
  const { auditor = '', developer = '', policy_publisher: publisher = '' } = members
  await client.call(updateMember, {
    params: { member_id: auditor },
    body: { status: 'suspended' },
  })
  const project = await seedProject(client, 'Support assistant')
  await seedProject(client, 'Search')
  const role = { role: 'project_member' } as const
  for (const member_id of [developer, publisher]) {
    await client.call(setProjectMember, { params: { project_id: project, member_id }, body: role })
  }
  return { members, projectId: project }
}

type Client = ReturnType<typeof createClient>

async function seedProject(client: Client, name: string): Promise<string> {
  const labels = { cost_center: '4711', team: name.toLowerCase() }
  const { id } = await client.call(createProject, { body: { name, labels } })
  const params = { project_id: id }
  await client.call(updateProject, {
    params,
    body: {
      limits: { requests_per_minute: 30, tokens_per_minute: 20_000 },
      monthly_budget: { credits: 250 * usd },
    },
  })
  const week = 7 * 86_400
  const created = await client.call(createProjectApiKey, {
    params,
    body: { name: `${name} production`, monthly_budget: { credits: 100 * usd } },
  })
  await client.call(updateProjectApiKey, {
    params: { ...params, key_id: created.id },
    body: { limits: { requests_per_minute: 20 } },
  })
  await client.call(createProjectApiKey, {
    params,
    body: { name: 'Load test', expires_in_seconds: week / 2 },
  })
  return id
}
