/** `?`: all keys that work now. */
import { Group, Kbd, Modal, SimpleGrid, Stack, Text } from '@mantine/core'
import { useKeyGroups } from '../keys/keys.tsx'

const NAMES: Readonly<Record<string, string>> = { ' ': 'Space', Escape: 'Esc', X: 'Shift x' }

export function KeyList({ isOpen, close }: { readonly isOpen: boolean; readonly close: () => void }) {
  const groups = useKeyGroups()
  return (
    <Modal
      opened={isOpen}
      onClose={close}
      title="Keys"
      size="lg"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        {groups.map(({ title, keys }) => (
          <Stack key={title} gap={4}>
            <Text fw={600}>{title}</Text>
            {keys.map((key) => (
              <Group key={key.keys} justify="space-between">
                <Text size="sm">{key.does}</Text>
                <Group gap={4}>
                  {(key.keys === ' ' ? [' '] : key.keys.split(' ')).map((each) => (
                    <Kbd key={each}>{NAMES[each] ?? each}</Kbd>
                  ))}
                </Group>
              </Group>
            ))}
          </Stack>
        ))}
      </SimpleGrid>
    </Modal>
  )
}
