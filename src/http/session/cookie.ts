/** The cookie that holds a session, as it is sent and as it comes back. Scripts of a page never see it, nor do other sites get it sent. */

export const COOKIE_NAME = 'bartleby_session'

/** A working day: who signs in in the morning is still in at its end. */
export const SESSION_SECONDS = 12 * 60 * 60

/** Browsers keep a secure cookie only where the page came over TLS, which ends before this server: its origin tells. */
const attributesFor = (origin: string | undefined): string =>
  `Path=/; HttpOnly; SameSite=Strict${origin?.startsWith('https://') === true ? '; Secure' : ''}`

/** The `Set-Cookie` that begins a session, for a page of this origin. */
export const settingCookie = (value: string, origin: string | undefined): string =>
  `${COOKIE_NAME}=${value}; ${attributesFor(origin)}; Max-Age=${SESSION_SECONDS}`

/** The `Set-Cookie` that ends it. */
export const clearingCookie = (origin: string | undefined): string =>
  `${COOKIE_NAME}=; ${attributesFor(origin)}; Max-Age=0`

/** More of one name no honest browser sends. */
const MOST = 4

/**
 * The values of the session's cookie in a `Cookie` header. There may be several: another site below the same domain can add one of
 * this name, and must not keep anybody out with it.
 */
export function cookiesIn(header: string | undefined): readonly string[] {
  const values: string[] = []
  for (const pair of header?.split(';') ?? []) {
    const end = pair.indexOf('=')
    if (end > 0 && pair.slice(0, end).trim() === COOKIE_NAME) values.push(pair.slice(end + 1).trim())
  }
  return values.slice(0, MOST)
}
