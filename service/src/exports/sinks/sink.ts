import {
  secretMask,
  secretMembers,
  sinkConfigs,
  type SinkType,
} from '@gatehouse/contract/exports/sink-config'

import type { SecretBox } from '#platform/secrets.ts'

/** A configuration as it is sent, stored or merged: which members it has depends on the type. */
export type Members = Readonly<Record<string, unknown>>

export type Sink = {
  readonly id: string
  readonly organizationId: string
  readonly type: SinkType
  readonly label: string
  readonly enabled: boolean
  /** With the mask in the place of each secret. */
  readonly config: Members
  /** The secrets as JSON, sealed; null: there are none. */
  readonly secrets: Buffer | null
  /** Null: no set does. */
  readonly managedBy: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

type Identity = Pick<Sink, 'id' | 'organizationId'>

/** Names table, column, organization and row, so that a sealed value cannot be moved to another sink. */
export const sealContext = ({ id, organizationId }: Identity) =>
  `export_sink/secrets/${organizationId}/${id}`

/** Divides a complete configuration into what may be shown and what is sealed. */
export function sealConfig(
  sink: Identity & { type: SinkType },
  config: Members,
  secretBox: SecretBox,
): Pick<Sink, 'config' | 'secrets'> {
  const isSecret = (name: string) => secretMembers[sink.type].includes(name)
  const entries = Object.entries(config)
  const secrets = entries.filter(([name]) => isSecret(name))
  const shown = entries.map(([name, value]) => [name, isSecret(name) ? secretMask : value])
  const text = Buffer.from(JSON.stringify(Object.fromEntries(secrets)))
  return {
    config: Object.fromEntries(shown),
    secrets: secrets.length === 0 ? null : secretBox.seal(text, sealContext(sink)),
  }
}

/** The configuration with its secrets, as it was saved. */
export function openMembers(sink: Sink, secretBox: SecretBox): Members {
  if (sink.secrets === null) return sink.config
  const text = secretBox.open(sink.secrets, sealContext(sink)).toString()
  return { ...sink.config, ...(JSON.parse(text) as Members) }
}

/** As `openMembers`, but secrets that no master key opens are left out: they have to be given once more. */
export function openKnownMembers(sink: Sink, secretBox: SecretBox): Members {
  try {
    return openMembers(sink, secretBox)
  } catch {
    const isSecret = (name: string) => secretMembers[sink.type].includes(name)
    return Object.fromEntries(Object.entries(sink.config).filter(([name]) => !isSecret(name)))
  }
}

/** The members in the order of their schema: the database does not keep the order in which they were sent. */
export function inSchemaOrder({ type, config }: Pick<Sink, 'type' | 'config'>): Members {
  const names = Object.keys(sinkConfigs[type].shape).filter((name) => name in config)
  return Object.fromEntries(names.map((name) => [name, config[name]]))
}
