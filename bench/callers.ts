import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import { runGatehouse } from '@gatehouse/tools/run-script'
import { createOrganization } from '@gatehouse/tools/start-stack'

import { bodyOf, path } from './chat-call.ts'
import { headerSets } from './header-sets.ts'
import type { Gatehouse } from './targets/gatehouse.ts'
import type { Target } from './targets/target.ts'

/** An organization of its own with one key, whose limits no load can reach. */
export async function createCaller(gatehouse: Gatehouse, name: string) {
  const { service, url: baseUrl } = gatehouse
  const organization = await createOrganization(service, name, '100000')
  const { organization_id, project_id, admin_key } = organization
  const key = await createClient({ baseUrl, credential: admin_key }).call(createProjectApiKey, {
    params: { project_id },
    body: { name: 'Load' },
  })
  for (const scope of [[], ['--project', project_id], ['--key', key.id]]) {
    const command = ['operator', 'limits', 'set', organization_id, ...scope]
    await runGatehouse([...command, ...limits], { environment: service })
  }
  const target: Target = { ...gatehouse, name, keys: [key.value] }
  return { organization, target }
}

/** Far above what one machine can do: a full load comes from one organization here. */
const limits = Object.entries({
  '--requests-per-minute': '1000000',
  '--requests-per-day': '100000000',
  '--tokens-per-minute': '1000000000',
  '--concurrent-requests': '1000',
}).flat()

/** Sends a plain call with a text that is only refused where something forbids it. */
export async function requireStatus(target: Target, forbidden: string, expected: number) {
  const [headers = {}] = headerSets(target)
  const body = bodyOf('plain').replace('What', `What of ${forbidden}`)
  const { status } = await fetch(target.url + path, { method: 'POST', headers, body })
  if (status === expected) return
  throw new Error(`${target.name} answered ${status} to a forbidden text, not ${expected}.`)
}
