/** Settings: what you may do, whose tokens there are, what this server runs with, and whether its store keeps its promises. */
import { Alert, Badge, SimpleGrid, Stack, Table, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { CopiedCommand } from '../acts/copied-command.tsx'
import { settingsQuery } from '../api/queries.ts'
import type { Role, Settings } from '../api/types.ts'
import { type FactList, Facts } from '../kit/facts.tsx'
import { Page, Panel, Shown } from '../kit/page.tsx'
import { useSession } from '../kit/role.tsx'
import { FullTime } from '../time/time.tsx'
import { VerifyPanel } from './verify-panel.tsx'

export function SettingsScreen() {
  const read = useQuery(settingsQuery)
  return (
    <Page
      title="Settings"
      lead="Read from the configuration when the server starts; this page changes nothing."
    >
      <Shown read={read} what="settings">
        {(settings) => (
          <>
            <SimpleGrid cols={{ base: 1, lg: 2 }}>
              <YourRole />
              <Panel title="This server">
                <Facts of={factsOf(settings)} />
              </Panel>
            </SimpleGrid>
            <Tokens settings={settings} />
            <VerifyPanel />
          </>
        )}
      </Shown>
    </Page>
  )
}

/** Each role may do what those before it may. */
const ALLOWED: readonly (readonly [Role, string])[] = [
  [
    'viewer',
    'Look at everything: letters with their payloads, history, queues and what lies in them, metrics.',
  ],
  [
    'operator',
    'Also work: retry, edit, discard and restore letters, requeue webhooks, produce, lease and settle items.',
  ],
  [
    'admin',
    'Also configure and erase: create, change and delete queues, purge dead jobs, set limits, run verify.',
  ],
]

function YourRole() {
  const { name, role, needsToken } = useSession()
  return (
    <Panel title="Your role">
      <Stack gap="sm">
        <Text size="sm">
          {needsToken ? (
            <>
              You are signed in as <strong>{name}</strong>, as {role}.
            </>
          ) : (
            'No tokens are configured: everybody who reaches this server may do everything.'
          )}
        </Text>
        <Table aria-label="What roles allow">
          <Table.Tbody>
            {ALLOWED.map(([each, allows]) => (
              <Table.Tr key={each} data-current={each === role || undefined}>
                <Table.Th scope="row" w="6rem">
                  {each}
                </Table.Th>
                <Table.Td>
                  {allows}{' '}
                  {each === role && (
                    <Badge variant="light" size="sm" className="badge">
                      yours
                    </Badge>
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Stack>
    </Panel>
  )
}

const factsOf = ({ version, node, startedAtUtc, store, retentionDays, environment }: Settings): FactList => ({
  Version: version,
  Node: node,
  'Started at': <FullTime at={startedAtUtc} />,
  Environment: environment.name,
  Store: `${store.kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'}, ${store.place}`,
  Retention: `${retentionDays} days: so long are letters kept that are resolved or expired, and history. Pending letters are never removed.`,
})

const CREATE = 'bartleby token create --name ops --role operator --config bartleby.yaml'

function Tokens({ settings: { tokens, tokensConfigured } }: { readonly settings: Settings }) {
  return (
    <Panel title="Tokens">
      <Stack gap="sm">
        {!tokensConfigured && (
          <Alert role="note" color="yellow" title="No tokens">
            Without tokens a server listens on this machine only. To let others in, make one for each of them.
          </Alert>
        )}
        {tokensConfigured && tokens === null && (
          <Text size="sm">Whose tokens there are is shown to admins.</Text>
        )}
        {tokens !== null && tokens.length > 0 && (
          <Table aria-label="Tokens" maw="30rem">
            <Table.Thead>
              <Table.Tr>
                <Table.Th scope="col">Name</Table.Th>
                <Table.Th scope="col">Role</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {tokens.map(({ name, role }) => (
                <Table.Tr key={name}>
                  <Table.Td>{name}</Table.Td>
                  <Table.Td>{role}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        )}
        <Text size="sm" component="div">
          A token is made on the command line, which prints it once; the configuration keeps its SHA-256 only.
          To revoke one, take its entry out. Both take effect when the server starts again.
        </Text>
        <CopiedCommand text={CREATE} label="the command" />
      </Stack>
    </Panel>
  )
}
