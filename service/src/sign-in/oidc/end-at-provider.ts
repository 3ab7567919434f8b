import { buildEndSessionUrl, type Configuration } from 'openid-client'

/** Where the browser signs out at the provider too; null if the provider has no such page. */
export function endAtProvider(
  configuration: Configuration,
  { idToken, returnUrl }: { idToken: string | null; returnUrl: string },
): URL | null {
  if (configuration.serverMetadata().end_session_endpoint === undefined) return null
  return buildEndSessionUrl(configuration, {
    post_logout_redirect_uri: returnUrl,
    ...(idToken === null ? {} : { id_token_hint: idToken }),
  })
}
