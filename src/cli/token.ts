/** `bartleby token`: makes bearer tokens. Only their SHA-256 is configured; the token itself is shown once. */
import { createHash, randomBytes } from 'node:crypto'
import { Option } from 'commander'
import { ROLES, type Role } from '../core/roles.ts'
import { sourceCommand } from '../sources/source-commands.ts'
import { commandGroup } from '../terminal/command.ts'
import { usage } from '../terminal/exit.ts'
import { readAll } from '../terminal/terminal.ts'

/** Lets secret scanners recognise a leaked token. */
const TOKEN_PREFIX = 'bartleby_'
const TOKEN_BYTES = 32

const create = sourceCommand(
  'create',
  'Make a token, print it once, and print or add its configuration entry.',
)
  .needed('--name <name>', 'who will use it; shown in logs')
  .adding<{ readonly role: Role }>((command) =>
    command.addOption(new Option('--role <role>', 'what it may do').choices(ROLES).makeOptionMandatory()),
  )
  .option('--config <file>', 'add the entry to this configuration file')
  .option('--json', 'print JSON')
  .help(`Roles: viewer reads; operator also works with items; admin also configures and purges.

Examples:
  $ bartleby token create --name ops --role operator
  $ bartleby token create --name ci --role viewer --config bartleby.yaml`)
  .work(async ({ terminal }, { name, role, config, json }) => {
    const token = TOKEN_PREFIX + randomBytes(TOKEN_BYTES).toString('base64url')
    const entry = { name, role, sha256: sha256(token) }
    // Stored first: a printed token that was not stored would look valid.
    if (config !== undefined) (await import('../config/index.ts')).addToken(config, entry)
    if (json) return terminal.out(JSON.stringify({ token, ...entry }))
    const next =
      config === undefined
        ? `\nAdd this to the configuration file:\n\n${await yamlOf(entry)}`
        : `added '${name}' (${role}) to ${config}; restart the server to use it`
    terminal.out(`token (shown only now): ${token}\n${next}`)
  })

const hash = sourceCommand(
  'hash',
  'Read a token from stdin and print the SHA-256 that the configuration wants.',
)
  .help('Example:\n  $ printf %s "$TOKEN" | bartleby token hash')
  .work(async ({ terminal }) => {
    const given = Buffer.from(await readAll(terminal.stdin)).toString('utf8')
    const token = given.replace(/\r?\n$/, '')
    if (token === '') throw usage('no token on stdin')
    terminal.out(sha256(token))
  })

export const tokenCommand = commandGroup(
  'token',
  'Make and hash bearer tokens.',
  `Examples:
  $ bartleby token create --name ops --role operator --config bartleby.yaml
  $ printf %s "$TOKEN" | bartleby token hash`,
  [create, hash],
)

async function yamlOf(entry: object): Promise<string> {
  const { stringify } = await import('yaml')
  return stringify({ auth: { tokens: [entry] } }).trimEnd()
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
