"""tools/check_kernels.py: functions that a kernel file shares, in object files of each kind."""

import base64
import importlib.util
import zlib

import pytest

from support.paths import ROOT

TOOL = ROOT / "tools" / "check_kernels.py"
pytestmark = pytest.mark.skipif(not TOOL.is_file(), reason="needs a checkout")

# Object files of clang, for x86-64, of this source:
#   namespace arboost {
#   inline int shared(int x) { return x * 3; }
#   namespace avx2 {
#   inline int own(int x) { return x ^ 5; }
#   namespace { int hidden(int x) { return x - 1; } }
#   extern int (*const functions[])(int);
#   int (*const functions[])(int) = {shared, own, hidden};
#   }
#   }
ELF = (
    "c-o~@&1(}u6n~SC%~xAf^bpWP>D|RvsR~kBHBAaJLLnEitkdqc8%(lwcN(J}Du_Z4V!?yn`p5Ji@K5mKy~p0_PIi"
    "WUOlDHSAI!ctzxQT-Z|Cc%-rC3z0ulsPA?>C3olX5U@x2DK&}kn3`P#VLJ{vo^qr^GB_;jA%J_9puNWJ%4Kt@$^b"
    "EZ%{iG^=L(l|=|vp!e-l6f*~J&hAY?2(99aC{?;znn6j|65krJgSHH%cx&Od<F4U#Agt{AS~x{psrQITZn&!cs!3"
    ")$ip<$#`)<El~63J-8s%@41CtW=L~$_z*`2sXyD5e9ABqJR8I-5^CHrfd(ny8JkqU6$7bG$fxRCFhX-JXUXR)?Wt"
    "4k%7=S$pm}fWIo!b$kyRVaU+j-HxPs5!ch}b<k94+4s-VW;B$>2)l)6jEysMj0z9qPJa)ZG_4p6~31wC{l(`4I~l"
    "-HAPE-}Si#gOW-wEjx|Y^T+Eg$7wrDD}L8?JtZ%#MIHQb?{Kioy1^i-!~cSaW@+|IJ%6B_eU8F-pC)mx+_M>R|8m"
    "Ma&!oO`gf|WP<RA4fH2M{d{vCt<mU13V`q$B$1Dg9^Q~0XVpA)sLfnKPI>bKDU$ay~`sR!x{FjB1g?nw*{`b~{~Q"
    "KRqke{Wp|vH6I{pAh*LOkckR4af1Fn9nQ559NK8_$d+}kaV5Pn)*L$YUKDOCOy4E|C?caAjmgYjQ<Oe!HsV"
)
MACHO = (
    "c-lMv>+L^w1_nlE1|R{%EI`b`1SAv~z(5j+I~W;o0u88~1`{fu9g10?>f+-|QY%Uj`r_k5Tq8m-&68z7H4hG07#f"
    "hd@$t#|dBr72d>6+MM}$1o`3w?J+Jgz=mH?nfnX&i-WL|DTVsc4*X<m6|UP^qtj|;NA1(Z&J(M%9?G7#o5p_-SP5"
    "ua9+n45~-zcZlp1Soxg3DsTPK%<e(GlKdB61@CyaVDsE12e>b2Y_@1L_b3SR1G5(Gb6<ZsUXy&^Jy<jee7Wnqw`1"
    "e2UZBP*ZqI&VIuT%BAkLv9PD0f@*)KE!{iyOf*2Sp1Q-Q)*f}NuRjB~QWI*x$9|B<ZFgWrFv@tpJvO&2Zb)bmWgs"
    "S7lqb>)Cc?g&%0HOFeAdcl@fP_1r1BB0}0HvXxVFTqaK1L*efMS=i0Uj<9AU+c!Jv%|=krG;zpLt?YQht7MiAiEv"
    "g^_W7d7f(~rnsR|yt|LTlcP_3ykESbSw?0`N-DZSv*L`zqSO>@+AY&c^O8$4ftk(~WGw&>C44a"
)
COFF = (
    "c-n=OF>ljA6vv-qJGdl47E>i!8jx5(xE3u5Ot}PxFd*6iq##A~T03nj*NI}&W<)9ibzov*U_fGIguPNF#HV0_g^7"
    "WgaK5vTyR!=?o%Qtmd++_<`JKHNHF$|<yOs`c3D|OCe;UKzHAnVB38YmAcf;{;jAb|6S2zUjv9lRP@SpW8;R@<rQ"
    "R~|FhRRhE%|+Z)7HE-uJFgEp6PcSQyG^)W%IcI`L(W*{s$?G!=1}5Xw7e?UNc``Vx?tH*r0>0|&nEf`xDQ2KfxeG"
    "~I~Mhw!hI#o4~2W!J^KEtJ?o!P!??$cqc4X)&HjmIluSd{*8cTT6QLS?)~IEZ=OVST&nq93!L205W>#$}D<zf`gU"
    "dX)%!B9BKG<}KlfuXfC(lt!oT)^fu4NT|HJ>9USe*9~WkmVx@WffybBvz5UxrkxxA^wD0okWL&zU;$iBoWvMp@aN"
    "yYr@FfT?6QDU)^ox$*6y$unQ&jGDQU%WSgD0#nX0W!9H)kIqnLp7+c=gb`-1N||cPT)XgKDeXdFY7+BkVYhGQ7%P"
    "{@;wNqh{}Nrxw7}(04R+>e;N#eF-Nc^FGPQU4B-B$+D0D$iY%mP`)bpD}ZEMjU4gzOuJm!^OCn|$rfA0zQyh$|Nh"
    "E}wLC%%X9WOFo%VuX6_ZWld<*61Kacz=2$|7K_Cd47mmZFhRBv+AxiZ#GXM2T#MTcsL3p<^9TfXT3q04*UT;4W%a"
)


@pytest.fixture
def tool():
    spec = importlib.util.spec_from_file_location("check_kernels", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("code", "name", "function"),
    [
        (ELF, "kernels_avx2.cpp.o", "_ZN7arboost6sharedEi"),
        (MACHO, "kernels_avx2.cpp.o", "__ZN7arboost6sharedEi"),
        (COFF, "kernels_avx2.cpp.obj", "?shared@arboost@@YAHH@Z"),
    ],
    ids=["elf", "macho", "coff"],
)
def test_functions_that_the_linker_merges_are_faults(tool, tmp_path, capsys, code, name, function):
    path = tmp_path / name
    path.write_bytes(zlib.decompress(base64.b85decode(code)))
    (tmp_path / name.replace("avx2", "baseline")).touch()
    assert tool.shared_functions(path) == [function]
    assert tool.main(tmp_path) == 1
    assert f"{name}: {function} is shared" in capsys.readouterr().out


def test_other_files_are_no_objects(tool, tmp_path):
    path = tmp_path / "kernels_avx2.cpp.o"
    path.write_text("text")
    with pytest.raises(ValueError, match="no object file"):
        tool.shared_functions(path)
