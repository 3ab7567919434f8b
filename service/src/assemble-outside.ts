import { createEventWriter } from '#audit/event-writer.ts'
import { createExports } from '#exports/create-exports.ts'
import { createModeration } from '#moderation/create-moderation.ts'
import { readReferencedKey } from '#platform/operator-file/key-reference.ts'
import { createSignIn, type SignInOptions } from '#sign-in/create-sign-in.ts'

import type { Foundation } from './foundation.ts'

// The features that a process reaches other systems with, apart from models.

/** Writes the events of calls that have no settlement. */
export const assembleEvents = ({ config, creditsDb, stateDirectory, ...foundation }: Foundation) =>
  createEventWriter({
    ...foundation,
    db: creditsDb,
    hasFolder: config.STATE_DIRECTORY !== undefined,
    mayDeliver: stateDirectory.isOwn,
  })

/** Only a process that answers callers asks scorers. */
export const assembleModeration = ({ config, environment, ...foundation }: Foundation) =>
  createModeration({
    ...foundation,
    tenantEgress: foundation.guardrailEgress,
    file: config.ROLES.includes('api') ? config.MODERATION_FILE : undefined,
    allowsTestDoubles: config.ALLOW_TEST_DOUBLES,
    readSecret: (reference) => readReferencedKey(reference, environment),
  })

export const assembleExports = ({ config, exportEgress, findAddresses, now }: Foundation) =>
  createExports({
    egress: exportEgress,
    findAddresses,
    privateTargets: config.EXPORT_PRIVATE_TARGETS,
    allowsInsecureTls: config.EXPORT_ALLOW_INSECURE_TLS,
    azureLoginUrl: config.EXPORT_AZURE_LOGIN_URL,
    s3PatienceMs: config.EXPORT_S3_FLUSH_SECONDS * 1000,
    now,
  })

type SignInNeeds = Pick<SignInOptions, 'hashKey' | 'announce' | 'secretBox'> & {
  access: Pick<SignInOptions, 'authentication' | 'sessionMaxMs'>
}

export const assembleSignIn = (
  { config, environment, ...foundation }: Foundation,
  { access, ...needs }: SignInNeeds,
) =>
  createSignIn({
    ...foundation,
    ...access,
    ...needs,
    isWithKeys: config.SIGN_IN_WITH_KEYS,
    file: config.SIGN_IN_FILE,
    readSecret: (reference) => readReferencedKey(reference, environment),
  })
