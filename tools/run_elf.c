/* Reads a program's ELF header, segments and dynamic section (elf(5)).
 *
 * Every offset is checked against the file's length before it is used: the file may be
 * anything. */
#include "run_elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/error.h"

/* What else can be done for such a program. */
#define INSTEAD                                                                          \
    "weir-run can't get between; recompile it with -include weir/fcgx.h, or put "        \
    "weir-gate in front of it"

/* A file in memory. */
struct image {
    const char *bytes;
    size_t len;
};

/* What matters of a program. */
struct program {
    const ElfW(Ehdr) * header;
    struct image loader; /* its path; len 0: none */
    bool dynamic, libfcgi;
};

/* ---- the file ---------------------------------------------------------------------- */

static const void *
at(const struct image *image, uint64_t offset, uint64_t len, size_t alignment)
{
    if (offset > image->len || len > image->len - offset || offset % alignment != 0)
        return NULL;
    return image->bytes + offset;
}

/* A NUL-ended text; NULL where it doesn't end within the file. */
static const char *text_at(const struct image *image, uint64_t offset)
{
    if (offset >= image->len ||
        !memchr(image->bytes + offset, '\0', image->len - (size_t)offset))
        return NULL;
    return image->bytes + offset;
}

static const ElfW(Phdr) *
    segment(const struct image *image, const ElfW(Ehdr) * header, unsigned index)
{
    uint64_t offset = header->e_phoff;
    if (offset > image->len || header->e_phentsize != sizeof(ElfW(Phdr)))
        return NULL;
    return at(image,
              offset + (uint64_t)index * sizeof(ElfW(Phdr)),
              sizeof(ElfW(Phdr)),
              _Alignof(ElfW(Phdr)));
}

/* Where an address of the running program is in the file; the file's length where it is
 * nowhere. */
static uint64_t
offset_of(const struct image *image, const ElfW(Ehdr) * header, uint64_t address)
{
    for (unsigned i = 0; i < header->e_phnum; i++) {
        const ElfW(Phdr) *load = segment(image, header, i);
        if (load && load->p_type == PT_LOAD && address >= load->p_vaddr &&
            address - load->p_vaddr < load->p_filesz && load->p_offset <= image->len)
            return load->p_offset + (address - load->p_vaddr);
    }
    return image->len;
}

static bool is_libfcgi(const char *name)
{
    return strncmp(name, "libfcgi.so", 10) == 0 || strncmp(name, "libfcgi++.so", 12) == 0;
}

static void read_dynamic(const struct image *image,
                         const ElfW(Phdr) * dynamic,
                         struct program *program)
{
    size_t len = (size_t)dynamic->p_filesz / sizeof(ElfW(Dyn));
    const ElfW(Dyn) *entries =
        at(image, dynamic->p_offset, len * sizeof(ElfW(Dyn)), _Alignof(ElfW(Dyn)));
    uint64_t names = image->len;
    program->dynamic = entries != NULL;
    for (size_t i = 0; entries && i < len && entries[i].d_tag != DT_NULL; i++)
        if (entries[i].d_tag == DT_STRTAB)
            names = offset_of(image, program->header, entries[i].d_un.d_ptr);
    for (size_t i = 0; entries && i < len && entries[i].d_tag != DT_NULL; i++) {
        const char *name = entries[i].d_tag == DT_NEEDED && names < image->len &&
                                   entries[i].d_un.d_val < image->len
                               ? text_at(image, names + entries[i].d_un.d_val)
                               : NULL;
        program->libfcgi = program->libfcgi || (name && is_libfcgi(name));
    }
}

/* False: no ELF file of this kind of machine; *ret_error_text says so. */
static bool read_program(const struct image *image,
                         struct program *ret_program,
                         const char **ret_error_text)
{
    struct program program = { .header = at(image, 0, sizeof(ElfW(Ehdr)), 1) };
    const unsigned char *ident = (const unsigned char *)image->bytes;
    if (image->len >= 2 && memcmp(ident, "#!", 2) == 0) {
        *ret_error_text = "is a script: weir-run needs the program that libfcgi is in";
        return false;
    }
    if (image->len < EI_NIDENT || memcmp(ident, ELFMAG, SELFMAG) != 0) {
        *ret_error_text = "is not a program (an ELF file)";
        return false;
    }
    unsigned word = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    if (!program.header || ident[EI_CLASS] != word || ident[EI_DATA] != ELFDATA2LSB) {
        *ret_error_text = "is for another kind of machine than weir-run";
        return false;
    }
    for (unsigned i = 0; i < program.header->e_phnum; i++) {
        const ElfW(Phdr) *part = segment(image, program.header, i);
        if (part && part->p_type == PT_DYNAMIC)
            read_dynamic(image, part, &program);
        if (part && part->p_type == PT_INTERP &&
            at(image, part->p_offset, part->p_filesz, 1))
            program.loader =
                (struct image){ image->bytes + part->p_offset, (size_t)part->p_filesz };
    }
    *ret_program = program;
    return true;
}

static bool open_image(const char *path, struct image *ret_image, struct stat *ret_stat)
{
    struct image image = { .bytes = "" };
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool ok = fstat(fd, ret_stat) == 0;
    if (ok && !S_ISREG(ret_stat->st_mode)) {
        ok = false;
        errno = S_ISDIR(ret_stat->st_mode) ? EISDIR : ENOEXEC;
    }
    image.len = ok ? (size_t)ret_stat->st_size : 0;
    if (image.len > 0)
        image.bytes = mmap(NULL, image.len, PROT_READ, MAP_PRIVATE, fd, 0);
    int error = errno;
    close(fd);
    errno = error;
    if (!ok || image.bytes == MAP_FAILED)
        return false;
    *ret_image = image;
    return true;
}

static void close_image(struct image *image)
{
    if (image->len > 0)
        munmap((void *)image->bytes, image->len);
}

/* ---- what it means ----------------------------------------------------------------- */

/* Whether the kernel will have the loader ignore our variable (ld.so(8), secure-execution
 * mode). */
static bool is_secure(const char *path, const struct stat *stat)
{
    if ((stat->st_mode & S_ISUID) && stat->st_uid != getuid())
        return true;
    if ((stat->st_mode & S_ISGID) && stat->st_gid != getgid())
        return true;
    return getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

/* NULL, or what keeps a library from being put before its libfcgi. */
static const char *compare(const struct program *program, const struct program *self)
{
    if (program->header->e_machine != self->header->e_machine)
        return "is for another kind of machine than weir-run";
    if (program->header->e_type != ET_EXEC && program->header->e_type != ET_DYN)
        return "is an ELF file, but not a program";
    if (program->loader.len == 0 || !program->dynamic)
        return "is statically linked: " INSTEAD;
    if (program->loader.len != self->loader.len ||
        memcmp(program->loader.bytes, self->loader.bytes, self->loader.len) != 0)
        return "is for another C library than weir-run";
    if (!program->libfcgi)
        return "is not linked with libfcgi.so: either it has libfcgi inside or doesn't "
               "use "
               "it; " INSTEAD;
    return NULL;
}

const char *
run_elf_hindrance(const void *bytes, size_t len, const void *self_bytes, size_t self_len)
{
    struct program program = { 0 }, self = { 0 };
    const char *why = NULL;
    if (!read_program(&(struct image){ self_bytes, self_len }, &self, &why) ||
        !read_program(&(struct image){ bytes, len }, &program, &why))
        return why;
    return compare(&program, &self);
}

bool run_elf_can_be_preloaded(const char *path, struct weir_error *ret_error)
{
    struct stat stat, self_stat;
    struct image image, self_image;
    if (access(path, X_OK) < 0 || !open_image(path, &image, &stat))
        return weir__error(ret_error, "%s: %s", path, strerror(errno));
    if (!open_image("/proc/self/exe", &self_image, &self_stat)) {
        close_image(&image);
        return weir__error(ret_error, "/proc/self/exe: %s", strerror(errno));
    }
    const char *why =
        run_elf_hindrance(image.bytes, image.len, self_image.bytes, self_image.len);
    if (!why && is_secure(path, &stat))
        why = "gets other rights than its caller's (set-user-ID, set-group-ID or "
              "capabilities), and then no library is loaded before it: " INSTEAD;
    close_image(&image);
    close_image(&self_image);
    return !why || weir__error(ret_error, "%s %s", path, why);
}
