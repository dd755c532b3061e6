/** The rule that nobody is served over a network without a token. */
import { BlockList, isIP } from 'node:net'
import { ConfigError, shown } from './config-error.ts'
import type { Config } from './schema.ts'

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

/** True for a host that only this machine can reach. Names other than localhost may resolve to anything. */
export function isLoopback(host: string): boolean {
  const family = isIP(host)
  if (family === 0) return host.toLowerCase() === 'localhost'
  return LOOPBACK.check(host, family === 4 ? 'ipv4' : 'ipv6')
}

/** Throws when other machines could reach the server and no token is configured. */
export function checkExposure(config: Pick<Config, 'host' | 'auth'>): void {
  if (isLoopback(config.host) || config.auth.tokens.length > 0) return
  throw new ConfigError([
    `host: ${shown(config.host)} can be reached from other machines, but auth.tokens is empty: anyone could read ` +
      "and change everything. Run 'bartleby token create', put the entry it prints under auth.tokens in the " +
      'configuration file, and start with --config FILE (or BARTLEBY_CONFIG=FILE). To serve this machine only, ' +
      "use '127.0.0.1' as host.",
  ])
}
