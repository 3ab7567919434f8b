import { type SinkConfig, sinkConfigs } from '@gatehouse/contract/exports/sink-config'

import type { SecretBox } from '#platform/secrets.ts'

import { type Members, openMembers, type Sink } from './sink.ts'

/** What is stored of a sink cannot be used. The message is shown with the sink. */
export class ConfigUnusable extends Error {
  override readonly name = 'ConfigUnusable'
}

/** The complete configuration of a sink with its secrets and defaults, for delivering to it. Throws `ConfigUnusable`. */
export function openSinkConfig(sink: Sink, secretBox: SecretBox): SinkConfig {
  const { data: config, error } = sinkConfigs[sink.type].safeParse(openStored(sink, secretBox))
  if (!config) {
    const member = error.issues[0]?.path.join('.') ?? ''
    throw new ConfigUnusable(`The member ${member} of its configuration is not valid any more.`)
  }
  return config
}

function openStored(sink: Sink, secretBox: SecretBox): Members {
  try {
    return openMembers(sink, secretBox)
  } catch {
    throw new ConfigUnusable('Its secrets cannot be opened with the configured MASTER_KEYS.')
  }
}
